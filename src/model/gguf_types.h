// SPDX-License-Identifier: MIT
//
// Sizes of the values in GGUF metadata. Internal to the GGUF parser.
#pragma once

#include <cstdint>

#include "model/gguf.h"

namespace kvasir {

inline constexpr uint32_t kGgufTypeCount = static_cast<uint32_t>(GgufType::f64) + 1;

// Bytes of a number or boolean; 0 for strings and arrays, whose size is their own.
constexpr uint64_t gguf_scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: return 0;
  }
  return 0;
}

}  // namespace kvasir
