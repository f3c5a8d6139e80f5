// SPDX-License-Identifier: MIT
//
// One head of one row in and out of its cells. Outside of a page the head is EncodedHead: codes in the order of
// dimensions, then scales; simd/page_layout.h says where they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simd/page_layout.h"

namespace kvasir::cpu {

struct EncodedHead {
  alignas(64) std::byte codes[kMaxHeadDim * sizeof(float)];
  uint16_t scales[kMaxHeadDim / kScaleDims];
};

namespace cells {

template <class Element, bool store>
void move_element(std::byte* cell, std::byte* outside) {
  if constexpr (store)
    std::memcpy(cell, outside, sizeof(Element));
  else
    std::memcpy(outside, cell, sizeof(Element));
}

template <class Element, bool store>
void move_keys(const SideLayout& side, std::byte* area, uint32_t row, uint32_t dims, std::byte* outside) {
  const size_t start = side.key_index(row, 0, dims);
  const size_t width = side.key_width(row / kLanes * kLanes);
  for (uint32_t d = 0; d < dims; d++)
    move_element<Element, store>(area + (start + d * width) * sizeof(Element), outside + d * sizeof(Element));
}

// Runs of 16 dimensions are adjacent.
template <bool store>
void move_values(const SideLayout& side, std::byte* area, uint32_t row, std::byte* outside) {
  const size_t run = kLanes * element_bytes(side.type);
  for (uint32_t d = 0; d < side.padded; d += kLanes) {
    std::byte* cell = area + side.value_index(row, d) * element_bytes(side.type);
    std::byte* part = outside + size_t{d} * element_bytes(side.type);
    std::memcpy(store ? cell : part, store ? part : cell, run);
  }
}

template <bool store>
void move_key_head(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  switch (side.type) {
    case CacheType::kF32: return move_keys<float, store>(side, area, row, side.padded, head.codes);
    case CacheType::kF16:
    case CacheType::kBF16: return move_keys<uint16_t, store>(side, area, row, side.padded, head.codes);
    case CacheType::kQ8_0:
      move_keys<int8_t, store>(side, area, row, side.padded, head.codes);
      return move_keys<uint16_t, store>(side, area + side.scales, row, side.scale_count(),
                                        reinterpret_cast<std::byte*>(head.scales));
  }
}

template <bool store>
void move_value_head(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  move_values<store>(side, area, row, head.codes);
  for (uint32_t i = 0; i < side.scale_count(); i++) {
    std::byte* cell = area + side.scales + side.value_scale_index(row, i) * 2;
    move_element<uint16_t, store>(cell, reinterpret_cast<std::byte*>(&head.scales[i]));
  }
}

}  // namespace cells

// `area`: the keys (values) of one head in a page.
inline void store_key(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  cells::move_key_head<true>(side, area, row, head);
}
inline void load_key(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  cells::move_key_head<false>(side, area, row, head);
}
inline void store_value(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  cells::move_value_head<true>(side, area, row, head);
}
inline void load_value(const SideLayout& side, std::byte* area, uint32_t row, EncodedHead& head) {
  cells::move_value_head<false>(side, area, row, head);
}

}  // namespace kvasir::cpu
