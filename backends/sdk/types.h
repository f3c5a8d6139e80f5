// SPDX-License-Identifier: MIT
//
// Facts about the element types of kvasir/types.h: name, elements and bytes of a block, and sizes of rows with every
// product checked.
#pragma once

#include <cstdint>

#include "kvasir/ops.h"
#include "sdk/structs.h"

namespace kvasir::sdk {

struct TypeFacts {
  const char* name;
  uint32_t block;  // elements
  uint32_t bytes;  // of a block
};

inline constexpr TypeFacts kTypes[] = {
    {"default", 0, 0},  {"f32", 1, 4},      {"f16", 1, 2},      {"bf16", 1, 2},
    {"q8_0", 32, 34},   {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},
    {"q5_1", 32, 24},   {"q2_k", 256, 84},  {"q3_k", 256, 110}, {"q4_k", 256, 144},
    {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136},
};
inline constexpr uint32_t kTypeCount = sizeof kTypes / sizeof kTypes[0];

constexpr bool known_type(uint32_t type) { return type > KV_TYPE_DEFAULT && type < kTypeCount; }
constexpr const char* type_name(uint32_t type) {
  return known_type(type) ? kTypes[type].name : type == KVB_TYPE_I32 ? "i32" : "unknown";
}
constexpr uint64_t type_bit(uint32_t type) { return uint64_t{1} << type; }

// Bytes of `width` elements of a known type, padded to whole blocks. Cannot overflow: at most 2^32 * 4.
constexpr uint64_t padded_bytes(uint32_t type, uint32_t width) {
  const TypeFacts& facts = kTypes[type];
  return (uint64_t{width} + facts.block - 1) / facts.block * facts.bytes;
}

// Bytes of a tensor of a known type; false when the width is no whole number of blocks or the product overflows.
[[nodiscard]] constexpr bool tensor_bytes(uint32_t type, uint32_t depth, uint32_t rows, uint32_t width, uint64_t* out) {
  if (width % kTypes[type].block != 0) return false;
  uint64_t bytes = 0;
  return checked_mul(padded_bytes(type, width), uint64_t{rows}, &bytes) && checked_mul(bytes, uint64_t{depth}, out);
}

}  // namespace kvasir::sdk
