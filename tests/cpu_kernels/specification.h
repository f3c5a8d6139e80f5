// SPDX-License-Identifier: MIT
//
// A matrix product as the sequence of operations that every kernel has to follow, one output at a time: what the bits of
// promise 3 are.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "product.h"

namespace kvasir::cpu::testing {

// int8 activations of a block: codes and scale as simd/generic/int8_block.h describes them.
struct Rounded {
  int32_t q[32];
  float scale;
};
inline Rounded round_block(const float* x) {
  Rounded out = {};
  float largest = 0;
  for (int k = 0; k < 32; ++k) largest = std::max(largest, std::abs(x[k]));
  if (largest < 127 * std::numeric_limits<float>::min()) return out;
  out.scale = largest / 127.0f;
  const float inverse = 127.0f / largest;
  for (int k = 0; k < 32; ++k)
    out.q[k] = static_cast<int32_t>(std::nearbyint(static_cast<double>(x[k]) * static_cast<double>(inverse)));
  return out;
}

inline float int8_product(const Matrix& m, uint32_t row, const float* x) {
  float sum = 0;
  for (uint32_t k0 = 0; k0 < m.width; k0 += 32) {
    const Rounded block = round_block(x + k0);
    int32_t dot = 0, total = 0;
    for (uint32_t k = 0; k < 32; ++k) {
      const Element e = m.at(row, k0 + k);
      dot += e.sub * e.code * block.q[k];
      total += block.q[k];
    }
    const Element e = m.at(row, k0);
    sum = std::fma(static_cast<float>(dot), e.scale * block.scale, sum);
    if (m.type == WeightType::kQ4_K) sum = std::fma(-e.minimum, block.scale * static_cast<float>(total), sum);
  }
  return sum;
}

inline float bf16_product(const Matrix& m, uint32_t row, const float* x) {
  float sum = 0;
  for (uint32_t k = 0; k < m.width; k += 2) {
    const bool pair = k + 1 < m.width;  // a lone last element is completed by zeros
    const float odd = pair ? sdk::f32_from_bf16(sdk::bf16_from_f32(x[k + 1])) : 0.0f;
    sum = std::fma(pair ? m.at(row, k + 1).value : 0.0f, odd, sum);
    sum = std::fma(m.at(row, k).value, sdk::f32_from_bf16(sdk::bf16_from_f32(x[k])), sum);
  }
  return sum;
}

inline float f32_product(const Matrix& m, uint32_t row, const float* x) {
  float sum = 0;
  for (uint32_t k = 0; k < m.width; ++k) sum = std::fma(m.at(row, k).value, x[k], sum);
  return sum;
}

// y [tokens, rows] of the whole matrix.
inline std::vector<float> specified(const Matrix& m, bool fast, uint32_t tokens, const std::vector<float>& x) {
  const FloatState state;
  std::vector<float> y;
  for (uint32_t t = 0; t < tokens; ++t)
    for (uint32_t r = 0; r < m.rows; ++r) {
      const float* xt = x.data() + size_t{t} * m.width;
      switch (operand_type(m.type, fast)) {
        case OperandType::kInt8: y.push_back(int8_product(m, r, xt)); break;
        case OperandType::kBF16: y.push_back(bf16_product(m, r, xt)); break;
        case OperandType::kF32: y.push_back(f32_product(m, r, xt)); break;
      }
    }
  return y;
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << what << ", output " << i << ": " << got[i] << " against " << want[i];
  }
}

}  // namespace kvasir::cpu::testing
