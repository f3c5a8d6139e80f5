// SPDX-License-Identifier: MIT
//
// One matrix product through a kernel table, with everything around the buffers poisoned, and the same product in double
// precision with the error it may have.
#pragma once

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "pack/pack.h"
#include "simd/float_state.h"
#include "simd/kernels.h"
#include "weights.h"

namespace kvasir::cpu::testing {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Bytes aligned for packed weights and operands, all 0xff at first: floats and f16 scales of this pattern are NaN.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : data_(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64))) {
    std::memset(data_.get(), 0xff, (bytes + 63) / 64 * 64 + 64);
  }
  char* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data_;
};

inline Buffer pack_matrix(const Matrix& m) {
  Buffer packed(packed_bytes(m.type, m.rows, m.width));
  pack_groups(m.type, m.bytes.data(), m.rows, m.width, 0, group_count(m.rows), packed.get());
  return packed;
}

// x [tokens, width], values in [-1, 1).
inline std::vector<float> random_rows(uint32_t tokens, uint32_t width, Random& random) {
  std::vector<float> x(size_t{tokens} * width);
  for (float& v : x) v = uniform(random);
  return x;
}

// What is multiplied and how it is cut. The rest of LinearArgs follows from it.
struct Product {
  const Matrix* matrix;
  const char* packed;
  bool fast = false;
  uint32_t first_row = 0, rows = 0;  // the view
  uint32_t tokens = 1;
  const float* x = nullptr;  // [tokens, width]
  const float* bias = nullptr;
  const float* residual = nullptr;  // [tokens, rows]
  uint32_t chunk = 0;               // row groups in a call; 0 = all
};

// y [tokens, rows]. Checks that nothing beside y is written.
inline std::vector<float> run(const Kernels& kernels, const Product& p) {
  const FloatState state;
  const uint32_t width = p.matrix->width, gap = 5;
  const OperandType operand = operand_type(p.matrix->type, p.fast);
  const size_t row_bytes = operand_row_bytes(operand, width);
  const size_t stride = operand == OperandType::kF32 ? row_bytes + 4 * gap : row_bytes + 64;
  Buffer rows(p.tokens * stride);
  if (operand == OperandType::kF32) {
    for (size_t t = 0; t < p.tokens; ++t) std::memcpy(rows.get() + t * stride, p.x + t * width, size_t{width} * 4);
  } else {
    kernels.prepare(operand, p.x, width, p.tokens, width, rows.get(), stride);
  }

  const size_t y_stride = p.rows + gap;
  std::vector<float> y(p.tokens * y_stride, kNan);
  const LinearArgs args = {p.matrix->type, operand,  p.packed, width,    p.first_row, p.rows,     rows.get(),
                           stride,         p.tokens, y.data(), y_stride, p.bias,      p.residual, p.rows};
  const uint32_t groups = linear_groups(p.first_row, p.rows), chunk = p.chunk == 0 ? groups : p.chunk;
  for (uint32_t g = 0; g < groups; g += chunk) kernels.linear(args, g, std::min(g + chunk, groups));

  std::vector<float> out;
  for (size_t t = 0; t < p.tokens; ++t) {
    for (size_t r = 0; r < p.rows; ++r) out.push_back(y[t * y_stride + r]);
    for (size_t r = p.rows; r < y_stride; ++r)
      if (!std::isnan(y[t * y_stride + r])) std::abort();  // written beside y
  }
  return out;
}

// The product in double and a bound of the error of the kernels: (steps + 4) 2^-24 of the sum of magnitudes for rounding
// in f32, and what rounding the activation costs: half a step of amax / 127 in each block of 32 (int8), 2^-8 of a value
// (bf16).
struct Expected {
  double value = 0, bound = 0;
};

inline Expected expected(const Product& p, uint32_t t, uint32_t r) {
  const Matrix& m = *p.matrix;
  const OperandType operand = operand_type(m.type, p.fast);
  const float* x = p.x + size_t{t} * m.width;
  Expected out;
  double magnitude = 0, rounding = 0;
  for (uint32_t k0 = 0; k0 < m.width; k0 += 32) {
    double largest = 0, weights = 0;
    for (uint32_t k = k0; k < std::min(k0 + 32, m.width); ++k) {
      const Element e = m.at(p.first_row + r, k);
      const double w = e.value, size = std::abs(w) + 2 * std::abs(static_cast<double>(e.minimum));
      out.value += w * x[k];
      magnitude += size * std::abs(x[k]);
      weights += size;
      largest = std::max(largest, std::abs(static_cast<double>(x[k])));
    }
    if (operand == OperandType::kInt8) rounding += weights * largest / 254 * 1.0001;
  }
  if (operand == OperandType::kBF16) rounding = magnitude * 0x1p-8;
  if (p.bias) out.value += p.bias[r], magnitude += std::abs(p.bias[r]);
  if (p.residual) {
    const double add = p.residual[size_t{t} * p.rows + r];
    out.value += add, magnitude += std::abs(add);
  }
  const double steps = operand == OperandType::kInt8 ? m.width / 16.0 : m.width;
  out.bound = rounding + (steps + 4) * 0x1p-24 * (magnitude + rounding) + 1e-30;
  return out;
}

}  // namespace kvasir::cpu::testing
