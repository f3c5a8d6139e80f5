// SPDX-License-Identifier: MIT
//
// Matrix products. The scale of a row is the largest product of the lengths of x and of a row of W: rounding errors of
// a sum are in proportion to its terms, however much of them cancels.
#include <algorithm>
#include <cmath>

#include "reference/ops.h"

namespace kvasir::conformance {
namespace {

struct Product {
  double value = 0, scale = 0;
};

Product product(const double* x, const double* w, uint32_t width) {
  double sum = 0, xx = 0, ww = 0;
  for (uint32_t i = 0; i < width; ++i) {
    sum += x[i] * w[i];
    xx += x[i] * x[i];
    ww += w[i] * w[i];
  }
  return {sum, std::sqrt(xx * ww)};
}

void put(Matrix& y, uint32_t r, uint32_t i, const Product& product, double bias) {
  y.row(r)[i] = product.value + bias;
  y.scale[r] = std::max(y.scale[r], product.scale + std::fabs(bias));
}

}  // namespace

Matrix linear(const OpView& view) {
  Matrix y(view.rows, view.width);
  const WeightMatrix& w = *view.weight[1];
  const uint32_t first = view.param(0);
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t i = 0; i < y.width; ++i) {
      put(y, r, i, product(view.in[0]->row(r), w.row(0, first + i), w.width), view.element(2, first + i, 0));
    }
  }
  return y;
}

Matrix head_linear(const OpView& view) {
  Matrix y(view.rows, view.width);
  const WeightMatrix& w = *view.weight[1];
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t i = 0; i < y.width; ++i) {
      const uint32_t head = i / w.rows;
      put(y, r, i, product(view.in[0]->row(r) + size_t{head} * w.width, w.row(head, i % w.rows), w.width), 0);
    }
  }
  return y;
}

Matrix moe_linear(const OpView& view) {
  Matrix y(view.rows, view.width);
  const WeightMatrix& w = *view.weight[1];
  const uint32_t each = view.in[0]->rows == y.rows ? 1 : view.in[3]->width;  // rows of y per row of x
  for (uint32_t r = 0; r < y.rows; ++r) {
    const auto expert = static_cast<uint32_t>(view.in[3]->data[r]);
    for (uint32_t i = 0; i < y.width; ++i) {
      put(y, r, i, product(view.in[0]->row(r / each), w.row(expert, i), w.width),
          view.element(2, expert * w.rows + i, 0));
    }
  }
  return y;
}

}  // namespace kvasir::conformance
