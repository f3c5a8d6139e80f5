// SPDX-License-Identifier: MIT
//
// Choosing: experts of a router, the largest of a row; and the weighted sum over experts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/ops.h"

namespace kvasir::conformance {
namespace {

// Indices of `keys` by falling key, ties to the lower index.
std::vector<uint32_t> falling(const std::vector<double>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  return order;
}

std::vector<double> route_scores(uint32_t scoring, const double* x, uint32_t experts) {
  std::vector<double> scores(x, x + experts);
  const double largest = *std::max_element(x, x + experts);
  double sum = 0;
  for (uint32_t e = 0; e < experts; ++e) sum += std::exp(x[e] - largest);
  const bool softmax = scoring == KVB_ROUTE_SOFTMAX || scoring == KVB_ROUTE_SOFTMAX_NORMALIZED;
  for (double& s : scores) s = softmax ? std::exp(s - largest) / sum : 1 / (1 + std::exp(-s));
  return scores;
}

// Takes the experts of all but the best `used` of `groups` groups out of the choice.
void keep_best_groups(std::vector<double>& keys, uint32_t groups, uint32_t used) {
  if (groups <= 1) return;
  const size_t each = keys.size() / groups;
  std::vector<double> group_scores;
  for (uint32_t g = 0; g < groups; ++g) {
    std::vector<double> members(keys.begin() + std::ptrdiff_t(g * each), keys.begin() + std::ptrdiff_t((g + 1) * each));
    std::sort(members.rbegin(), members.rend());
    group_scores.push_back(members[0] + (each > 1 ? members[1] : 0));
  }
  const std::vector<uint32_t> order = falling(group_scores);
  for (uint32_t g = used; g < groups; ++g) {
    std::fill_n(keys.begin() + std::ptrdiff_t(order[g] * each), each, -INFINITY);
  }
}

}  // namespace

Matrix moe_route(const OpView& view, Matrix* ids) {
  const uint32_t experts = view.param(0), used = view.param(1), scoring = view.param(2);
  Matrix weights(view.rows, used);
  *ids = Matrix(view.rows, used);
  for (uint32_t r = 0; r < view.rows; ++r) {
    const double* x = view.in[0]->row(r);
    const std::vector<double> scores = route_scores(scoring, x, experts);
    std::vector<double> keys = scores;
    for (uint32_t e = 0; e < experts; ++e) keys[e] += view.element(1, e, 0);
    keep_best_groups(keys, view.param(4) & 0xffff, view.param(4) >> 16);
    const std::vector<uint32_t> order = falling(keys);
    double sum = 0;
    for (uint32_t k = 0; k < used; ++k) sum += scores[order[k]];
    const bool normalized = scoring == KVB_ROUTE_SOFTMAX_NORMALIZED || scoring == KVB_ROUTE_SIGMOID_NORMALIZED;
    double largest = 1;
    for (uint32_t e = 0; e < experts; ++e) largest = std::max(largest, std::fabs(x[e]));
    for (uint32_t k = 0; k < used; ++k) {
      ids->row(r)[k] = order[k];
      weights.row(r)[k] = scores[order[k]] / (normalized ? sum : 1) * view.real(3);
      weights.scale[r] = std::max(weights.scale[r], std::fabs(weights.row(r)[k]) * largest);
    }
  }
  return weights;
}

Matrix moe_sum(const OpView& view) {
  Matrix y(view.rows, view.width);
  const Matrix& weights = *view.in[1];
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t e = 0; e < weights.width; ++e) {
      const double w = weights.row(r)[e];
      const uint32_t from = r * weights.width + e;
      for (uint32_t i = 0; i < y.width; ++i) y.row(r)[i] += w * view.in[0]->row(from)[i];
      y.scale[r] += std::fabs(w) * view.in[0]->scale[from];
    }
  }
  return y;
}

Matrix top_k(const OpView& view, Matrix* ids) {
  Matrix y(view.rows, view.width);
  *ids = Matrix(view.rows, view.width);
  for (uint32_t r = 0; r < y.rows; ++r) {
    const double* x = view.in[0]->row(r);
    const std::vector<uint32_t> order = falling(std::vector<double>(x, x + view.in[0]->width));
    for (uint32_t k = 0; k < y.width; ++k) {
      ids->row(r)[k] = order[k];
      y.row(r)[k] = x[order[k]];
    }
    y.scale[r] = view.in[0]->scale[r];
  }
  return y;
}

}  // namespace kvasir::conformance
