// SPDX-License-Identifier: MIT
//
// Where the rows of one kv head lie inside a cache page. Keys have positions across the lanes of a vector, so that a
// score is never summed across lanes; values have dimensions across the lanes. Both are one linear stream when the
// positions of a page are visited in order.
//
//   keys    blocks of 16 positions (the last one may be narrower): element (row, d) of block b at
//           16 b padded + d width(b) + row % 16
//   values  blocks of 16 dimensions: element (row, d) at (d / 16) 16 page_tokens + 16 row + d % 16
//
// q8_0 keeps the codes in these orders and after them the scales, f16, in the same orders with one "dimension" for 32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::cpu {

enum class CacheType : uint8_t { kF32, kF16, kBF16, kQ8_0 };

constexpr uint32_t kLanes = 16;
constexpr uint32_t kScaleDims = 32;  // dimensions that share a q8_0 scale
constexpr uint32_t kMaxHeadDim = 1024;
constexpr size_t kPageSlack = 64;  // bytes behind a page that a vector load may touch

constexpr size_t element_bytes(CacheType type) {
  return type == CacheType::kF32 ? 4 : type == CacheType::kQ8_0 ? 1 : 2;
}

constexpr uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

// The keys or the values of one kv head in one page.
struct SideLayout {
  CacheType type;
  uint32_t page_tokens;
  uint32_t dim;
  uint32_t padded;  // dim in whole blocks: 16 for values, 32 for q8_0
  size_t scales;    // byte offset of the scales
  size_t bytes;     // all of it

  uint32_t scale_count() const { return type == CacheType::kQ8_0 ? padded / kScaleDims : 0; }

  // Element index of (row, d) among `dims` interleaved dimensions: `padded` for codes, scale_count() for scales.
  size_t key_index(uint32_t row, uint32_t d, uint32_t dims) const {
    const uint32_t first = row / kLanes * kLanes;
    return size_t{first} * dims + size_t{d} * key_width(first) + (row - first);
  }
  // Positions in the block that starts at row `first`.
  uint32_t key_width(uint32_t first) const { return page_tokens - first < kLanes ? page_tokens - first : kLanes; }
  size_t value_index(uint32_t row, uint32_t d) const {
    return (size_t{d / kLanes} * page_tokens + row) * kLanes + d % kLanes;
  }
  size_t value_scale_index(uint32_t row, uint32_t block) const { return size_t{block} * page_tokens + row; }
};

constexpr SideLayout side_layout(CacheType type, uint32_t page_tokens, uint32_t dim, bool values) {
  const uint32_t unit = type == CacheType::kQ8_0 ? kScaleDims : values ? kLanes : 1;
  SideLayout side{type, page_tokens, dim, round_up(dim, unit), 0, 0};
  side.scales = size_t{side.padded} * page_tokens * element_bytes(type);
  side.bytes = side.scales;
  if (type == CacheType::kQ8_0) side.bytes += size_t{side.padded / kScaleDims} * page_tokens * 2;
  const size_t align = page_tokens < kLanes ? 4 : 64;  // small pages would be mostly padding
  side.bytes = (side.bytes + align - 1) / align * align;
  return side;
}

}  // namespace kvasir::cpu
