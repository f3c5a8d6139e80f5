// SPDX-License-Identifier: MIT
//
// Promise 3 for matrix products: an output depends on its row of x, its row of W and the mode, and on nothing else. Every
// output is compared bit for bit with the sequence of operations in specification.h.
#include "product.h"
#include "specification.h"
#include "tables.h"

namespace kvasir::cpu::testing {
namespace {

class LinearBitsTest : public TableTest {};
KV_INSTANTIATE_TABLES(LinearBitsTest);

std::vector<uint32_t> widths(WeightType type) {
  if (type == WeightType::kQ4_K || type == WeightType::kQ6_K) return {256, 2048 + 512};
  if (is_block_type(type)) return {32, 96, 2048 + 96};
  return {1, 172, 173, 1024 + 3};
}

// Any number of tokens, any chunks of row groups: always the specified bits.
TEST_P(LinearBitsTest, AreTheSpecifiedSequenceHoweverTheWorkIsCut) {
  Random random(5);
  for (const WeightType type : kAllTypes)
    for (const uint32_t width : widths(type)) {
      const Matrix m =
          random_matrix(type, width > 1000 ? 35 : 9 * 16 + 3, width, random);  // within and beyond a cache block
      const Buffer packed = pack_matrix(m);
      const uint32_t most = 9;
      const std::vector<float> x = random_rows(most, width, random);
      for (const bool fast : {false, true}) {
        const std::vector<float> want = specified(m, fast, most, x);
        const std::string what =
            std::string(type_name(type)) + (fast ? " fast, width " : " exact, width ") + std::to_string(width);
        for (const uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 7u, 9u})
          for (const uint32_t chunk : {0u, 1u, 3u}) {
            const Product p = {&m, packed.get(), fast, 0, m.rows, tokens, x.data(), nullptr, nullptr, chunk};
            expect_same_bits(run(kernels(), p), {want.begin(), want.begin() + long(size_t{tokens} * m.rows)},
                             what + ", " + std::to_string(tokens) + " tokens, chunks of " + std::to_string(chunk));
            if (HasFatalFailure()) return;
          }
      }
    }
}

TEST_P(LinearBitsTest, DoNotDependOnTheView) {
  Random random(6);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 83, 512, random);
    const Buffer packed = pack_matrix(m);
    const uint32_t tokens = 6;
    const std::vector<float> x = random_rows(tokens, m.width, random);
    for (const bool fast : {false, true}) {
      const std::vector<float> whole = run(kernels(), {&m, packed.get(), fast, 0, m.rows, tokens, x.data()});
      for (const uint32_t first : {5u, 16u, 31u, 64u}) {
        const uint32_t rows = m.rows - first - 2;
        std::vector<float> want;
        for (uint32_t t = 0; t < tokens; ++t)
          for (uint32_t r = 0; r < rows; ++r) want.push_back(whole[size_t{t} * m.rows + first + r]);
        const Product p = {&m, packed.get(), fast, first, rows, tokens, x.data()};
        expect_same_bits(run(kernels(), p), want, type_name(type));
      }
    }
  }
}

// Seventy tokens (two cache blocks) against one at a time.
TEST_P(LinearBitsTest, DoNotDependOnTheBatch) {
  Random random(7);
  for (const WeightType type : kAllTypes) {
    const Matrix m = random_matrix(type, 40, 2304, random);
    const Buffer packed = pack_matrix(m);
    const uint32_t tokens = 70;
    const std::vector<float> x = random_rows(tokens, m.width, random);
    for (const bool fast : {false, true}) {
      std::vector<float> want;
      for (uint32_t t = 0; t < tokens; ++t) {
        const std::vector<float> y =
            run(kernels(), {&m, packed.get(), fast, 0, m.rows, 1, x.data() + size_t{t} * m.width});
        want.insert(want.end(), y.begin(), y.end());
      }
      expect_same_bits(run(kernels(), {&m, packed.get(), fast, 0, m.rows, tokens, x.data()}), want, type_name(type));
    }
  }
}

}  // namespace
}  // namespace kvasir::cpu::testing
