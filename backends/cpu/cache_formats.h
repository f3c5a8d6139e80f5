// SPDX-License-Identifier: MIT
//
// One head of one row between its cells' form (EncodedHead) and the forms in which rows leave and enter a cache: STORED,
// the element type's blocks as types.h lays them out, and f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cache_cells.h"
#include "sdk/half.h"

namespace kvasir::cpu {

constexpr size_t kBlockBytes = 2 + kScaleDims;  // a q8_0 block as types.h lays it out

inline size_t stored_head_bytes(const SideLayout& side) {
  return side.type == CacheType::kQ8_0 ? size_t{side.scale_count()} * kBlockBytes : side.dim * element_bytes(side.type);
}

inline void to_stored(const SideLayout& side, const EncodedHead& head, std::byte* out) {
  if (side.type != CacheType::kQ8_0) {
    std::memcpy(out, head.codes, stored_head_bytes(side));
    return;
  }
  for (uint32_t i = 0; i < side.scale_count(); i++, out += kBlockBytes) {
    std::memcpy(out, &head.scales[i], 2);
    std::memcpy(out + 2, head.codes + size_t{i} * kScaleDims, kScaleDims);
  }
}

inline void from_stored(const SideLayout& side, const std::byte* in, EncodedHead& head) {
  if (side.type != CacheType::kQ8_0) {
    const size_t bytes = stored_head_bytes(side);
    std::memcpy(head.codes, in, bytes);
    std::memset(head.codes + bytes, 0, side.padded * element_bytes(side.type) - bytes);
    return;
  }
  for (uint32_t i = 0; i < side.scale_count(); i++, in += kBlockBytes) {
    std::memcpy(&head.scales[i], in, 2);
    std::memcpy(head.codes + size_t{i} * kScaleDims, in + 2, kScaleDims);
  }
}

template <class Bits>
Bits code(const EncodedHead& head, uint32_t i) {
  Bits bits;
  std::memcpy(&bits, head.codes + size_t{i} * sizeof bits, sizeof bits);
  return bits;
}

inline float widened(const SideLayout& side, const EncodedHead& head, uint32_t i) {
  switch (side.type) {
    case CacheType::kF16: return sdk::f32_from_f16(code<uint16_t>(head, i));
    case CacheType::kBF16: return sdk::f32_from_bf16(code<uint16_t>(head, i));
    case CacheType::kQ8_0:
      return sdk::f32_from_f16(head.scales[i / kScaleDims]) * static_cast<float>(code<int8_t>(head, i));
    default: return code<float>(head, i);
  }
}

inline void to_f32(const SideLayout& side, const EncodedHead& head, std::byte* out) {
  for (uint32_t i = 0; i < side.dim; i++) {
    const float x = widened(side, head, i);
    std::memcpy(out + size_t{i} * sizeof x, &x, sizeof x);
  }
}

}  // namespace kvasir::cpu
