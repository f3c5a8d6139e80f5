// SPDX-License-Identifier: MIT
//
// Matrix products of every weight type, compute mode and instruction set against double precision, at awkward shapes.
// The bound of each element follows from the arithmetic (product.h).
#include "product.h"
#include "tables.h"

namespace kvasir::cpu::testing {
namespace {

class LinearTest : public TableTest {};
KV_INSTANTIATE_TABLES(LinearTest);

void expect_close(const Kernels& kernels, const Product& p) {
  const std::vector<float> y = run(kernels, p);
  for (uint32_t t = 0; t < p.tokens; ++t)
    for (uint32_t r = 0; r < p.rows; ++r) {
      const Expected want = expected(p, t, r);
      ASSERT_NEAR(y[size_t{t} * p.rows + r], want.value, want.bound)
          << type_name(p.matrix->type) << (p.fast ? " fast, " : " exact, ") << p.rows << " x " << p.matrix->width
          << " from row " << p.first_row << ", token " << t << " of " << p.tokens << ", row " << r;
    }
}

std::vector<uint32_t> widths(WeightType type) {
  if (type == WeightType::kQ4_K || type == WeightType::kQ6_K) return {256, 512, 2048 + 256};
  if (is_block_type(type)) return {32, 64, 96, 256, 2048 + 32};
  return {1, 2, 15, 32, 96, 172, 173, 512 + 1, 2048 + 32};
}

TEST_P(LinearTest, MatchesDoublePrecision) {
  Random random(1);
  for (const WeightType type : kAllTypes)
    for (const uint32_t width : widths(type)) {
      const bool wide = width > 256;  // sums in double are slow: fewer shapes
      for (const uint32_t rows : wide ? std::vector<uint32_t>{17} : std::vector<uint32_t>{1, 3, 15, 16, 17, 33}) {
        const Matrix m = random_matrix(type, rows, width, random);
        const Buffer packed = pack_matrix(m);
        for (const uint32_t tokens : wide ? std::vector<uint32_t>{1, 7} : std::vector<uint32_t>{1, 2, 3, 5, 8}) {
          const std::vector<float> x = random_rows(tokens, width, random);
          for (const bool fast : {false, true}) {
            expect_close(kernels(), {&m, packed.get(), fast, 0, rows, tokens, x.data()});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
}

// More tokens than a cache block holds, more row groups than one, several parts of the width.
TEST_P(LinearTest, MatchesDoublePrecisionInManyBlocks) {
  Random random(2);
  for (const WeightType type : kAllTypes) {
    for (const uint32_t tokens : {31u, 64u, 67u}) {
      const Matrix m = random_matrix(type, tokens == 31 ? 40 : 8 * 16 + 5, tokens == 31 ? 2048 + 256 : 512, random);
      const Buffer packed = pack_matrix(m);
      const std::vector<float> x = random_rows(tokens, m.width, random);
      for (const bool fast : {false, true}) {
        const std::vector<float> y = run(kernels(), {&m, packed.get(), fast, 0, m.rows, tokens, x.data()});
        const Product p = {&m, packed.get(), fast, 0, m.rows, tokens, x.data()};
        for (uint32_t i = 0; i < 100; ++i) {  // a sample
          const uint32_t t = random() % tokens, r = random() % m.rows;
          const Expected want = expected(p, t, r);
          ASSERT_NEAR(y[size_t{t} * m.rows + r], want.value, want.bound)
              << type_name(type) << (fast ? " fast" : " exact") << ", token " << t << " of " << tokens << ", row " << r;
        }
      }
    }
  }
}

TEST_P(LinearTest, ViewsStartAnywhereAndBiasAndResidualAreAdded) {
  Random random(3);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 70, is_block_type(type) ? 256 : 40, random);
    const Buffer packed = pack_matrix(m);
    for (const uint32_t first : {0u, 1u, 15u, 16u, 17u, 32u, 69u})
      for (const uint32_t rows : {1u, 2u, 16u, 31u, 38u})
        for (const uint32_t tokens : {1u, 3u}) {
          if (first + rows > m.rows || (rows == 31 && tokens == 3)) continue;
          const std::vector<float> x = random_rows(tokens, m.width, random);
          const std::vector<float> bias = random_rows(1, rows, random), residual = random_rows(tokens, rows, random);
          for (const bool fast : {false, true}) {
            expect_close(kernels(), {&m, packed.get(), fast, first, rows, tokens, x.data(), bias.data(), nullptr});
            expect_close(kernels(), {&m, packed.get(), fast, first, rows, tokens, x.data(), nullptr, residual.data()});
            expect_close(kernels(),
                         {&m, packed.get(), fast, first, rows, tokens, x.data(), bias.data(), residual.data(), 1});
            if (HasFatalFailure()) return;
          }
        }
  }
}

TEST_P(LinearTest, ResidualMayBeTheOutput) {
  const FloatState state;
  Random random(4);
  const Matrix m = random_matrix(WeightType::kF32, 40, 64, random);
  const Buffer packed = pack_matrix(m);
  const uint32_t tokens = 5;
  const std::vector<float> x = random_rows(tokens, m.width, random), residual = random_rows(tokens, m.rows, random);
  const std::vector<float> apart =
      run(kernels(), {&m, packed.get(), false, 0, m.rows, tokens, x.data(), nullptr, residual.data()});
  std::vector<float> y = residual;
  const LinearArgs args = {
      m.type, OperandType::kF32, packed.get(), m.width, 0,        m.rows, x.data(), m.width * sizeof(float),
      tokens, y.data(),          m.rows,       nullptr, y.data(), m.rows};
  kernels().linear(args, 0, linear_groups(0, m.rows));
  EXPECT_EQ(y, apart);
}

}  // namespace
}  // namespace kvasir::cpu::testing
