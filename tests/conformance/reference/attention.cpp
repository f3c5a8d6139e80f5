// SPDX-License-Identifier: MIT
//
// Storing keys and values, and attention over them. The scale of a row is the largest value it could have mixed, times
// the largest |q| |k| of a score where that exceeds 1: an error of a score is an error of its weight.
#include <algorithm>
#include <cmath>

#include "reference/ops.h"

namespace kvasir::conformance {
namespace {

const std::vector<uint32_t>& pages_of(const OpView& view, uint32_t token) {
  return view.step.pages[view.step.sequence_of[token]][view.cache.group_index(view.param(0))];
}

// What a token sees: rows of positions first .. position.
struct Visible {
  uint32_t first = 0, position = 0;
  std::vector<std::vector<double>> keys, values;
};

Visible visible_to(const OpView& view, uint32_t token) {
  const uint32_t layer = view.param(0), window = view.cache.group_of(layer).window;
  Visible seen;
  seen.position = view.step.positions[token];
  seen.first = window == 0 || seen.position < window ? 0 : seen.position - window + 1;
  for (uint32_t j = seen.first; j <= seen.position; ++j) {
    seen.keys.push_back(view.cache.read(layer, KVB_ROWS_K, pages_of(view, token), j));
    seen.values.push_back(view.cache.read(layer, KVB_ROWS_V, pages_of(view, token), j));
  }
  return seen;
}

struct Softmax {
  std::vector<double> weights;
  double sharpness = 1;  // largest |q| |k| scale, at least 1
};

Softmax softmax_of(const OpView& view, const Visible& seen, uint32_t head, const double* query, size_t key_at) {
  const uint32_t k_dim = view.cache.group_of(view.param(0)).k_dim;
  Softmax result;
  std::vector<double>& s = result.weights;
  for (size_t j = 0; j < seen.keys.size(); ++j) {
    const double* key = seen.keys[j].data() + key_at;
    double dot = 0, qq = 0, kk = 0;
    for (uint32_t i = 0; i < k_dim; ++i) {
      dot += query[i] * key[i];
      qq += query[i] * query[i];
      kk += key[i] * key[i];
    }
    const double cap = view.real(3), distance = double(seen.first) + double(j) - seen.position;
    const double score = view.real(2) * dot;
    s.push_back((cap == 0 ? score : cap * std::tanh(score / cap)) + view.element(2, head, 0) * distance);
    result.sharpness = std::max({result.sharpness, std::fabs(view.real(2)) * std::sqrt(qq * kk), std::fabs(s.back())});
  }
  const double sink = view.element(1, head, -INFINITY);
  const double largest = std::max(sink, *std::max_element(s.begin(), s.end()));
  double sum = std::exp(sink - largest);
  for (double& x : s) sum += x = std::exp(x - largest);
  for (double& x : s) x /= sum;
  return result;
}

}  // namespace

void kv_store(const OpView& view) {
  for (uint32_t t = 0; t < view.step.tokens.size(); ++t) {
    const std::vector<uint32_t>& pages = pages_of(view, t);
    const uint32_t position = view.step.positions[t];
    view.cache.write(view.param(0), KVB_ROWS_K, pages, position, view.in[0]->row(t));
    if (view.in[1] != nullptr) view.cache.write(view.param(0), KVB_ROWS_V, pages, position, view.in[1]->row(t));
  }
}

Matrix attention(const OpView& view) {
  Matrix y(view.rows, view.width);
  const kvb_cache_group& group = view.cache.group_of(view.param(0));
  const uint32_t heads = view.param(1);
  for (uint32_t t = 0; t < y.rows; ++t) {
    const Visible seen = visible_to(view, t);
    for (uint32_t head = 0; head < heads; ++head) {
      const size_t kv_head = head / (heads / group.kv_heads);
      const Softmax softmax =
          softmax_of(view, seen, head, view.in[0]->row(t) + size_t{head} * group.k_dim, kv_head * group.k_dim);
      for (size_t j = 0; j < seen.values.size(); ++j) {
        for (uint32_t i = 0; i < group.v_dim; ++i) {
          const double value = seen.values[j][kv_head * group.v_dim + i];
          y.row(t)[size_t{head} * group.v_dim + i] += softmax.weights[j] * value;
          y.scale[t] = std::max(y.scale[t], std::fabs(value) * softmax.sharpness);
        }
      }
    }
  }
  return y;
}

}  // namespace kvasir::conformance
