// SPDX-License-Identifier: MIT
//
// Packing loses nothing: every row comes back as the dequantised values of types.h, bit for bit.
#include "pack/pack.h"

#include <gtest/gtest.h>

#include <bit>

#include "product.h"

namespace kvasir::cpu::testing {
namespace {

std::vector<uint32_t> widths(WeightType type) {
  if (type == WeightType::kQ4_K || type == WeightType::kQ6_K) return {256, 768};
  if (is_block_type(type)) return {32, 64, 96, 160};
  return {1, 2, 3, 64, 173};
}

void expect_rows(const Matrix& m, const char* packed) {
  std::vector<float> row(m.width + 1);
  for (uint32_t r = 0; r < m.rows; ++r) {
    row.assign(m.width + 1, kNan);
    unpack_row(m.type, packed, m.width, r, row.data());
    for (uint32_t k = 0; k < m.width; ++k) {
      const float want = m.at(r, k).value;
      if (std::isnan(want) && std::isnan(row[k])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(row[k]), std::bit_cast<uint32_t>(want))
          << type_name(m.type) << " row " << r << " of " << m.rows << ", element " << k << " of " << m.width;
    }
    ASSERT_TRUE(std::isnan(row[m.width])) << "written behind the row";
  }
}

TEST(Pack, EveryRowComesBack) {
  Random random(11);
  for (const WeightType type : kAllTypes)
    for (const uint32_t width : widths(type))
      for (const uint32_t rows : {1u, 15u, 16u, 17u, 35u}) {
        const Matrix m = random_matrix(type, rows, width, random);
        const Buffer packed = pack_matrix(m);
        expect_rows(m, packed.get());
        if (HasFatalFailure()) return;
      }
}

// Any bytes at all: codes, signs, infinite, NaN and denormal scales.
TEST(Pack, AnyBytesComeBack) {
  Random random(12);
  for (const WeightType type : kAllTypes) {
    Matrix m = random_matrix(type, 19, 512, random);
    for (uint8_t& byte : m.bytes) byte = static_cast<uint8_t>(random());
    const Buffer packed = pack_matrix(m);
    expect_rows(m, packed.get());
    if (HasFatalFailure()) return;
  }
}

TEST(Pack, GroupsCanBePackedInAnyPieces) {
  Random random(13);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 70, 256, random);
    const size_t bytes = packed_bytes(type, m.rows, m.width), group = group_bytes(type, m.width);
    const Buffer whole = pack_matrix(m), pieces(bytes);
    pack_groups(type, m.bytes.data(), m.rows, m.width, 3, 5, pieces.get());
    for (size_t i = 0; i < 3 * group; ++i)
      ASSERT_EQ(pieces.get()[i], char(0xff)) << "a group not asked for was written";
    pack_groups(type, m.bytes.data(), m.rows, m.width, 0, 3, pieces.get());
    EXPECT_EQ(std::memcmp(whole.get(), pieces.get(), bytes), 0) << type_name(type);
    EXPECT_EQ(pieces.get()[bytes], char(0xff)) << "written behind the end";
  }
}

TEST(Pack, RowsBehindTheLastAreZero) {
  Random random(14);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 5, 256, random);
    const Buffer packed = pack_matrix(m);
    std::vector<float> row(m.width);
    for (uint32_t r = m.rows; r < kGroupRows; ++r) {
      unpack_row(type, packed.get(), m.width, r, row.data());
      for (const float value : row) ASSERT_EQ(value, 0.0f) << type_name(type) << " row " << r;
    }
  }
}

TEST(Pack, TakesAboutTheBytesOfTheSource) {
  for (const WeightType type : kAllTypes) {
    const double source = 4096.0 * 4096 / weight_unit(type).block * static_cast<double>(block_bytes(type));
    EXPECT_LE(static_cast<double>(packed_bytes(type, 4096, 4096)), source * 1.01) << type_name(type);
  }
  EXPECT_EQ(group_count(0), 0u);
  EXPECT_EQ(group_count(UINT32_MAX), (uint64_t{UINT32_MAX} + 15) / 16);
}

}  // namespace
}  // namespace kvasir::cpu::testing
