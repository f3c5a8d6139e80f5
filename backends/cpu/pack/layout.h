// SPDX-License-Identifier: MIT
//
// The packed form of weights: 16 output rows across the lanes of a vector, so that nothing is ever summed across lanes.
// Rows are padded to whole groups of 16 (zero rows), the width to whole units. Which bytes hold what is in pack.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::cpu {

// The weight types that are multiplied in their compressed form.
enum class WeightType : uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_K, kQ6_K };
constexpr int kWeightTypes = 7;

constexpr uint32_t kGroupRows = 16;  // rows of a row group
constexpr size_t kPackAlign = 64;    // alignment of packed weights; a row group is a multiple of it

// A unit is the smallest run of the width that is packed on its own, for all 16 rows of a group.
//
//   type   width  lines of 64 bytes
//   F32        1  1: element of row r in lane r
//   F16        2  1: 16 rows of the even element, then 16 rows of the odd one
//   BF16       2  1: lane r holds the pair (even, odd) of row r
//   Q8_0      64  16 of codes, 1 of scales
//   Q4_0      64  8 of codes, 1 of scales
//   Q4_K     256  32 of codes, 3 of 6-bit scales and minima, 1 of d and m
//   Q6_K     256  8 x (4 of low nibbles, 2 of high bits), 4 of scales, half of d, half unused
struct WeightUnit {
  uint32_t block;  // elements of a source block: a width is a multiple of it
  uint32_t width;  // elements of a unit
  uint32_t lines;  // lines of 64 bytes in a packed unit
};

constexpr WeightUnit weight_unit(WeightType type) {
  switch (type) {
    case WeightType::kF32: return {1, 1, 1};
    case WeightType::kF16: return {1, 2, 1};
    case WeightType::kBF16: return {1, 2, 1};
    case WeightType::kQ8_0: return {32, 64, 17};
    case WeightType::kQ4_0: return {32, 64, 9};
    case WeightType::kQ4_K: return {256, 256, 36};
    case WeightType::kQ6_K: return {256, 256, 53};
  }
  return {1, 1, 1};
}

constexpr bool is_block_type(WeightType type) { return type >= WeightType::kQ8_0; }

// Row groups that cover `rows` rows.
constexpr uint32_t group_count(uint32_t rows) { return rows / kGroupRows + (rows % kGroupRows != 0); }

// Bytes of one packed row group of `width` elements per row.
constexpr size_t group_bytes(WeightType type, uint32_t width) {
  const WeightUnit unit = weight_unit(type);
  const size_t units = size_t{width} / unit.width + (width % unit.width != 0);
  return units * unit.lines * 64;
}

// Bytes of a packed matrix; the caller has checked that rows and width fit a file it has read.
constexpr size_t packed_bytes(WeightType type, uint32_t rows, uint32_t width) {
  return group_count(rows) * group_bytes(type, width);
}

}  // namespace kvasir::cpu
