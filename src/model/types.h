// SPDX-License-Identifier: MIT
//
// Sizes and names of the element types (KV_TYPE_*), and their numbers in GGUF files. The layouts themselves are in
// kvasir/types.h, the arithmetic in convert.h.
#pragma once

#include <cstdint>

#include "kvasir/types.h"

namespace kvasir {

struct TypeInfo {
  const char* name;       // "q4_0"
  uint32_t block_values;  // values per block, along a row
  uint32_t block_bytes;
  uint32_t gguf_id;  // the type's number in GGUF files
};

inline constexpr uint32_t kTypeCount = KV_TYPE_IQ4_XS + 1;

// Null for KV_TYPE_DEFAULT and for numbers that are no type.
const TypeInfo* type_info(uint32_t type);

// "q4_0", or "unknown".
const char* type_name(uint32_t type);

// Bytes of a row of `values` values. False when the type is unknown, the row is no whole number of blocks, or the
// result does not fit.
[[nodiscard]] bool row_bytes(uint32_t type, uint64_t values, uint64_t* out);

// KV_TYPE_DEFAULT when Kvasir does not know the type.
uint32_t type_from_gguf(uint32_t gguf_id);

// The name of a GGUF type number that Kvasir does not know but others do ("iq2_xxs"); "unknown" otherwise.
const char* gguf_type_name(uint32_t gguf_id);

}  // namespace kvasir
