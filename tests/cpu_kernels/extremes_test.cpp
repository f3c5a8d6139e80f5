// SPDX-License-Identifier: MIT
//
// Matrix products of extreme values: largest codes (where saturating instructions would saturate), zeros, denormal and
// infinite scales, activations that are tiny, huge or not numbers.
#include "product.h"
#include "specification.h"
#include "tables.h"

namespace kvasir::cpu::testing {
namespace {

class ExtremesTest : public TableTest {};
KV_INSTANTIATE_TABLES(ExtremesTest);

constexpr WeightType kBlockTypes[] = {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_K, WeightType::kQ6_K};

void fill_scales(Matrix& m, uint32_t row, uint16_t bits) {
  const size_t step = block_bytes(m.type), blocks = m.row_bytes() / step;
  for (size_t i = 0; i < blocks; ++i) {
    uint8_t* b = m.bytes.data() + row * m.row_bytes() + i * step;
    std::memcpy(b + (m.type == WeightType::kQ6_K ? 208 : 0), &bits, 2);
    if (m.type == WeightType::kQ4_K) std::memcpy(b + 2, &bits, 2);
  }
}

void expect_specified(const Kernels& kernels, const Matrix& m, uint32_t tokens, const std::vector<float>& x) {
  const Buffer packed = pack_matrix(m);
  for (const bool fast : {false, true})
    expect_same_bits(run(kernels, {&m, packed.get(), fast, 0, m.rows, tokens, x.data()}), specified(m, fast, tokens, x),
                     std::string(type_name(m.type)) + (fast ? " fast" : " exact"));
}

TEST_P(ExtremesTest, LargestCodes) {
  for (const WeightType type : kBlockTypes)
    for (const int fill : {0x00, 0x7f, 0x80, 0x88, 0xff}) {
      Matrix m = {type, 17, 512, {}};
      m.bytes.assign(m.rows * m.row_bytes(), static_cast<uint8_t>(fill));
      for (uint32_t r = 0; r < m.rows; ++r) fill_scales(m, r, r % 2 == 0 ? 0x3c00 : 0xbc00);  // 1, -1
      std::vector<float> x;
      for (uint32_t t = 0; t < 5; ++t)
        for (uint32_t k = 0; k < m.width; ++k)
          x.push_back(t == 0 ? 1.0f : t == 1 ? -1.0f : k >> (t - 2) & 1 ? 1.0f : -1.0f);
      expect_specified(kernels(), m, 5, x);
      if (HasFatalFailure()) return;
    }
}

TEST_P(ExtremesTest, DenormalAndLargestScales) {
  Random random(21);
  for (const WeightType type : kBlockTypes) {
    Matrix m = random_matrix(type, 20, 256, random);
    const uint16_t scales[] = {0x0001, 0x8001, 0x03ff, 0x0000, 0x7bff};  // denormal, zero, 65504
    for (uint32_t r = 0; r < m.rows; ++r) fill_scales(m, r, scales[r % 5]);
    expect_specified(kernels(), m, 3, random_rows(3, m.width, random));
    if (HasFatalFailure()) return;
  }
}

TEST_P(ExtremesTest, ZerosGiveZero) {
  Random random(22);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 20, 256, random);
    const Buffer packed = pack_matrix(m);
    const std::vector<float> x(size_t{3} * m.width, 0.0f);
    for (const bool fast : {false, true})
      for (const float y : run(kernels(), {&m, packed.get(), fast, 0, m.rows, 3, x.data()}))
        ASSERT_EQ(y, 0.0f) << type_name(type);
  }
}

// Products below the smallest normal number are zero, and large ones overflow, in the same place everywhere.
TEST_P(ExtremesTest, TinyAndHugeActivations) {
  Random random(23);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 20, 256, random);
    std::vector<float> x;
    for (const float size : {1e-40f, 1.5e-36f, 1e-36f, 3e-38f, 1e-30f, 1e30f, 3.3e38f})
      for (uint32_t k = 0; k < m.width; ++k) x.push_back(uniform(random) * size);
    expect_specified(kernels(), m, 7, x);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ExtremesTest, RowsWithBrokenScalesStayAlone) {
  Random random(24);
  for (const WeightType type : kBlockTypes) {
    Matrix m = random_matrix(type, 20, 256, random);
    const std::vector<float> x = random_rows(5, m.width, random);
    const Buffer sound = pack_matrix(m);
    fill_scales(m, 3, 0x7c00);   // infinity
    fill_scales(m, 18, 0x7e00);  // NaN
    const Buffer broken = pack_matrix(m);
    for (const bool fast : {false, true}) {
      const std::vector<float> want = run(kernels(), {&m, sound.get(), fast, 0, m.rows, 5, x.data()});
      const std::vector<float> got = run(kernels(), {&m, broken.get(), fast, 0, m.rows, 5, x.data()});
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t row = i % m.rows;
        if (row == 3 || row == 18)
          ASSERT_FALSE(std::isfinite(got[i])) << type_name(type) << " row " << row;
        else
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
              << type_name(type) << " row " << row;
      }
    }
  }
}

TEST_P(ExtremesTest, BrokenActivationsReachEveryOutputOfTheirTokenAndNoOther) {
  Random random(25);
  for (const WeightType type : kAllTypes)
    for (const float broken : {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      const Matrix m = random_matrix(type, 20, 256, random);
      const Buffer packed = pack_matrix(m);
      std::vector<float> x = random_rows(5, m.width, random);
      for (const bool fast : {false, true}) {
        const std::vector<float> want = run(kernels(), {&m, packed.get(), fast, 0, m.rows, 5, x.data()});
        const float kept = std::exchange(x[2 * m.width + 77], broken);
        const std::vector<float> got = run(kernels(), {&m, packed.get(), fast, 0, m.rows, 5, x.data()});
        x[2 * m.width + 77] = kept;
        for (size_t i = 0; i < got.size(); ++i) {
          if (i / m.rows == 2)
            ASSERT_FALSE(std::isfinite(got[i])) << type_name(type) << (fast ? " fast" : " exact");
          else
            ASSERT_EQ(got[i], want[i]) << type_name(type);
        }
      }
    }
}

}  // namespace
}  // namespace kvasir::cpu::testing
