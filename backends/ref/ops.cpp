// SPDX-License-Identifier: MIT
//
// The ops of kvasir/ops.h, one function each, in the order of the specification: read them side by side. Sums are
// double and run in index order; a value is rounded to f32 once, when it is written, unless the specification says
// otherwise. Nothing here depends on the number of tokens in the step: each row is computed as if it were alone.
// Operands have been verified. Over the size limit because the specification is one page and this is its mirror.
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "sdk/errors.h"

namespace kvasir::ref {

const float* OpContext::vector(uint32_t i, uint32_t buffer) const {
  if (!has(i)) return nullptr;
  weight(i).read_row(0, 0, program.row(buffer));
  return program.row(buffer);
}

bool OpContext::stopped() const { return step.stop != nullptr && __atomic_load_n(step.stop, __ATOMIC_RELAXED) != 0; }

namespace {

double dot(const float* a, const float* b, uint32_t count) {
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double activate(uint32_t activation, double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  switch (activation) {
    case KVB_ACT_SILU: return x / (1 + std::exp(-x));
    case KVB_ACT_GELU: return x * 0.5 * std::erfc(-x * kSqrtHalf);
    case KVB_ACT_GELU_TANH: return x * 0.5 * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    default: return x < 0 ? 0 : x;  // KVB_ACT_RELU; NaN stays
  }
}

// y = function(x), element by element.
template <typename Function>
kv_status map(const OpContext& c, Function function) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  for (uint64_t i = 0; i < y.rows * y.width; ++i) y.data[i] = static_cast<float>(function(x.data[i]));
  return KV_OK;
}

// ---- mandatory

kv_status embed(const OpContext& c) {
  const Matrix y = c.out();
  const float scale = c.real(0) == 0 ? 1 : c.real(0);
  float* const row = c.program.row(0);
  for (uint32_t t = 0; t < y.rows; ++t) {
    const int32_t token = c.step.tokens[t];
    if (token < 0) {
      std::copy_n(c.step.embeddings + size_t{static_cast<uint32_t>(~token)} * y.width, y.width, y.row(t));
    } else {
      c.weight(0).read_row(0, static_cast<uint32_t>(token), row);
      for (uint32_t i = 0; i < y.width; ++i) y.row(t)[i] = scale * row[i];
    }
    if (!c.has(1)) continue;
    c.weight(1).read_row(0, c.step.positions[t], row);
    for (uint32_t i = 0; i < y.width; ++i) y.row(t)[i] += row[i];
  }
  return KV_OK;
}

kv_status rms_norm(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const uint32_t group = c.param(1) == 0 ? x.width : c.param(1);
  const float* w = c.vector(1, 0);
  for (uint64_t first = 0; first < x.rows * x.width; first += group) {
    const float* from = x.data + first;
    const double scale = 1 / std::sqrt(dot(from, from, group) / group + double{c.real(0)});
    for (uint32_t i = 0; i < group; ++i) {
      y.data[first + i] = static_cast<float>(from[i] * scale * (w != nullptr ? double{w[i]} : 1));
    }
  }
  return KV_OK;
}

kv_status linear(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const float* bias = c.vector(2, 1);
  float* const row = c.program.row(0);
  for (uint32_t i = 0; i < y.width; ++i) {
    if (c.stopped()) return KV_CANCELLED;
    c.weight(1).read_row(0, c.param(0) + i, row);
    for (uint64_t r = 0; r < y.rows; ++r) {
      y.row(r)[i] = static_cast<float>(dot(x.row(r), row, x.width));
      if (bias != nullptr) y.row(r)[i] += bias[c.param(0) + i];
    }
  }
  return KV_OK;
}

kv_status rope(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const uint32_t heads = c.param(0);
  const uint32_t head_dim = c.param(1);
  const kvb_rope& rope = c.program.code().rope(c.op());
  const bool adjacent = rope.pairing == KVB_ROPE_ADJACENT;
  for (uint32_t t = 0; t < x.rows; ++t) {
    if (x.data != y.data) std::copy_n(x.row(t), x.width, y.row(t));
    for (uint32_t i = 0; i < rope.pairs; ++i) {
      const double angle = c.step.positions[t] * sdk::rope_frequencies(rope)[i];
      const auto cosine = static_cast<float>(rope.magnitude * std::cos(angle));
      const auto sine = static_cast<float>(rope.magnitude * std::sin(angle));
      for (uint32_t head = 0; head < heads; ++head) {
        float* const rotated = y.row(t) + size_t{head} * head_dim + rope.first;
        float& u = rotated[adjacent ? 2 * i : i];
        float& v = rotated[adjacent ? 2 * i + 1 : i + rope.pairs];
        const float turned = u * cosine - v * sine;
        v = u * sine + v * cosine;
        u = turned;
      }
    }
  }
  return KV_OK;
}

// Where a position of a sequence lies in the pages of a layer's group.
struct Cell {
  uint32_t page, row;
};
Cell cell_at(const OpContext& c, uint32_t layer, uint32_t sequence, uint32_t position) {
  const uint32_t group = c.cache.layout().layer_group[layer];
  const uint32_t page_tokens = c.cache.layout().groups[group].page_tokens;
  const kvb_page_table& table = c.step.tables[group];
  const uint32_t* pages = table.pages + size_t{sequence} * table.pages_per_sequence;
  return {pages[position / page_tokens], position % page_tokens};
}

kv_status kv_store(const OpContext& c) {
  const uint32_t layer = c.param(0);
  for (uint32_t t = 0; t < c.step.token_count; ++t) {
    const Cell cell = cell_at(c, layer, c.step.sequence_of[t], c.step.positions[t]);
    c.cache.write_row(layer, KVB_ROWS_K, cell.page, cell.row, c.in(0).row(t));
    if (c.has(1)) c.cache.write_row(layer, KVB_ROWS_V, cell.page, cell.row, c.in(1).row(t));
  }
  return KV_OK;
}

// Reports one softmax row of a traced program.
void trace_row(const OpContext& c, uint32_t what, uint32_t token, uint32_t head, uint32_t first, uint32_t count) {
  if (!c.program.code().traced() || c.step.trace == nullptr) return;
  float* const data = c.program.trace_row();
  std::transform(c.program.numbers(), c.program.numbers() + count, data,
                 [](double x) { return static_cast<float>(x); });
  const kvb_trace_record record{sizeof record, what, c.index, token, head, 1, count, first, data};
  c.step.trace(c.step.trace_user, &record);
}

// What the softmax of ATTENTION needs to know of one query head.
struct Head {
  const float* query;  // [k_dim]
  uint32_t index, kv_head;
  const float* sink;   // NULL: none
  const float* slope;  // NULL: none
};

// scores [position - first + 1], for positions first .. position
void attention_scores(const OpContext& c, uint32_t t, uint32_t first, const Head& head, double* scores) {
  const uint32_t layer = c.param(0);
  const uint32_t position = c.step.positions[t];
  const uint32_t k_dim = c.cache.layout().group_of(layer).k_dim;
  const double cap = c.real(3);
  float* const key = c.program.row(0);
  for (uint32_t j = first; j <= position; ++j) {
    const Cell cell = cell_at(c, layer, c.step.sequence_of[t], j);
    c.cache.read_head(layer, KVB_ROWS_K, cell.page, cell.row, head.kv_head, key);
    double score = c.real(2) * dot(head.query, key, k_dim);
    if (cap != 0) score = cap * std::tanh(score / cap);
    if (head.slope != nullptr) score += *head.slope * (double{1} * j - position);
    scores[j - first] = score;
  }
}

// A sink takes part in the sum, and so in the largest score too.
void softmax(double* scores, uint32_t count, const float* sink) {
  double largest = sink != nullptr ? double{*sink} : -std::numeric_limits<double>::infinity();
  for (uint32_t j = 0; j < count; ++j) largest = std::max(largest, scores[j]);
  double sum = sink != nullptr ? std::exp(*sink - largest) : 0;
  for (uint32_t j = 0; j < count; ++j) sum += scores[j] = std::exp(scores[j] - largest);
  for (uint32_t j = 0; j < count; ++j) scores[j] /= sum;
}

// y [v_dim] = sum over positions of weight * value
void attention_values(const OpContext& c, uint32_t t, uint32_t first, uint32_t kv_head, const double* weights,
                      float* y) {
  const uint32_t layer = c.param(0);
  const uint32_t v_dim = c.cache.layout().group_of(layer).v_dim;
  double* const sums = c.program.sums();
  float* const value = c.program.row(0);
  std::fill_n(sums, v_dim, 0.0);
  for (uint32_t j = first; j <= c.step.positions[t]; ++j) {
    const Cell cell = cell_at(c, layer, c.step.sequence_of[t], j);
    c.cache.read_head(layer, KVB_ROWS_V, cell.page, cell.row, kv_head, value);
    for (uint32_t i = 0; i < v_dim; ++i) sums[i] += weights[j - first] * value[i];
  }
  std::transform(sums, sums + v_dim, y, [](double sum) { return static_cast<float>(sum); });
}

kv_status attention(const OpContext& c) {
  const kvb_cache_group& group = c.cache.layout().group_of(c.param(0));
  const uint32_t heads = c.param(1);
  const float* sinks = c.vector(1, 1);
  const float* slopes = c.vector(2, 2);
  double* const scores = c.program.numbers();
  for (uint32_t t = 0; t < c.step.token_count; ++t) {
    const uint32_t position = c.step.positions[t];
    const uint32_t first = group.window == 0 || position < group.window ? 0 : position - group.window + 1;
    const uint32_t count = position - first + 1;
    for (uint32_t h = 0; h < heads; ++h) {
      if (c.stopped()) return KV_CANCELLED;
      const Head head{c.in(0).row(t) + size_t{h} * group.k_dim, h, h / (heads / group.kv_heads),
                      sinks != nullptr ? sinks + h : nullptr, slopes != nullptr ? slopes + h : nullptr};
      attention_scores(c, t, first, head, scores);
      trace_row(c, KVB_TRACE_SCORES, t, h, first, count);
      softmax(scores, count, head.sink);
      trace_row(c, KVB_TRACE_WEIGHTS, t, h, first, count);
      attention_values(c, t, first, head.kv_head, scores, c.out().row(t) + size_t{h} * group.v_dim);
    }
  }
  return KV_OK;
}

kv_status glu(const OpContext& c) {
  const Matrix gate = c.in(0);
  const Matrix y = c.out();
  for (uint64_t r = 0; r < y.rows; ++r) {
    const float* up = c.has(1) ? c.in(1).row(r) : gate.row(r) + y.width;
    for (uint32_t i = 0; i < y.width; ++i)
      y.row(r)[i] = static_cast<float>(activate(c.param(0), gate.row(r)[i]) * up[i]);
  }
  return KV_OK;
}

kv_status add(const OpContext& c) {
  const Matrix y = c.out();
  for (uint64_t i = 0; i < y.rows * y.width; ++i) y.data[i] = c.in(0).data[i] + c.in(1).data[i];
  return KV_OK;
}

kv_status select_rows(const OpContext& c) {
  const Matrix y = c.out();
  for (uint32_t o = 0; o < y.rows; ++o) std::copy_n(c.in(0).row(c.step.output_rows[o]), y.width, y.row(o));
  return KV_OK;
}

// ---- optional

kv_status layer_norm(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const float* w = c.vector(1, 0);
  const float* b = c.vector(2, 1);
  for (uint64_t r = 0; r < x.rows; ++r) {
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < x.width; ++i) mean += x.row(r)[i];
    mean /= x.width;
    for (uint32_t i = 0; i < x.width; ++i) variance += (x.row(r)[i] - mean) * (x.row(r)[i] - mean);
    const double scale = 1 / std::sqrt(variance / x.width + double{c.real(0)});
    for (uint32_t i = 0; i < x.width; ++i) {
      const double normal = (x.row(r)[i] - mean) * scale;
      y.row(r)[i] = static_cast<float>(normal * (w != nullptr ? double{w[i]} : 1) + (b != nullptr ? double{b[i]} : 0));
    }
  }
  return KV_OK;
}

kv_status activation(const OpContext& c) {
  return map(c, [kind = c.param(0)](double x) { return activate(kind, x); });
}

kv_status scale(const OpContext& c) {
  return map(c, [factor = double{c.real(0)}](double x) { return factor * x; });
}

kv_status softcap(const OpContext& c) {
  return map(c, [cap = double{c.real(0)}](double x) { return cap * std::tanh(x / cap); });
}

// Elements outside the copied part are those of in1, or 0 without it.
kv_status copy_heads(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const uint32_t heads = c.param(0);
  const uint32_t sources = c.param(4);
  for (uint64_t r = 0; r < y.rows; ++r) {
    if (!c.has(1)) std::fill_n(y.row(r), y.width, 0.0f);
    if (c.has(1) && c.in(1).data != y.data) std::copy_n(c.in(1).row(r), y.width, y.row(r));
    for (uint32_t head = 0; head < heads; ++head) {
      const float* from = x.row(r) + size_t{sources == 1 ? 0 : head} * (x.width / sources) + c.param(1);
      std::copy_n(from, c.param(3), y.row(r) + size_t{head} * (y.width / heads) + c.param(2));
    }
  }
  return KV_OK;
}

kv_status head_linear(const OpContext& c) {
  const Weight& weight = c.weight(1);
  float* const row = c.program.row(0);
  for (uint32_t head = 0; head < weight.depth(); ++head) {
    for (uint32_t i = 0; i < weight.rows(); ++i) {
      if (c.stopped()) return KV_CANCELLED;
      weight.read_row(head, i, row);
      for (uint64_t r = 0; r < c.out().rows; ++r) {
        const float* x = c.in(0).row(r) + size_t{head} * weight.width();
        c.out().row(r)[size_t{head} * weight.rows() + i] = static_cast<float>(dot(x, row, weight.width()));
      }
    }
  }
  return KV_OK;
}

// The next of `keys` in falling order, ties in rising order of index, after the one at `last` (-1: the first).
// -1 where only NaN is left.
int32_t next_largest(const double* keys, uint32_t count, int32_t last) {
  int32_t best = -1;
  for (uint32_t i = 0; i < count; ++i) {
    const auto index = static_cast<int32_t>(i);
    const bool later = last < 0 || keys[i] < keys[last] || (keys[i] == keys[last] && index > last);
    if (later && !std::isnan(keys[i]) && (best < 0 || keys[i] > keys[best])) best = index;
  }
  return best;
}

// The sum of a group's two largest keys.
double group_score(const double* keys, uint32_t count) {
  double first = -std::numeric_limits<double>::infinity(), second = first;
  for (uint32_t e = 0; e < count; ++e) {
    if (std::isnan(keys[e])) return keys[e];
    second = std::max(second, std::min(first, keys[e]));
    first = std::max(first, keys[e]);
  }
  return count > 1 ? first + second : first;
}

// Takes the experts of all but the best `used` of `groups` groups out of the choice: their keys become NaN.
void keep_best_groups(double* keys, uint32_t experts, uint32_t groups, uint32_t used) {
  const uint32_t each = experts / groups;
  for (uint32_t kept = groups; kept > used; --kept) {
    double least = std::numeric_limits<double>::infinity();
    uint32_t worst = 0;
    for (uint32_t g = 0; g < groups; ++g) {
      const double score = group_score(keys + size_t{g} * each, each);
      if (score <= least) least = score, worst = g;  // of equal ones the later goes
    }
    std::fill_n(keys + size_t{worst} * each, each, std::numeric_limits<double>::quiet_NaN());
  }
}

double route_score(uint32_t scoring, float x, double largest, double sum) {
  const bool softmax = scoring == KVB_ROUTE_SOFTMAX || scoring == KVB_ROUTE_SOFTMAX_NORMALIZED;
  return softmax ? std::exp(x - largest) / sum : 1 / (1 + std::exp(-double{x}));
}

kv_status moe_route(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix weights = c.out(0);
  const Matrix ids = c.out(1);
  const float* bias = c.vector(1, 0);
  const uint32_t scoring = c.param(2);
  const bool normalized = scoring == KVB_ROUTE_SOFTMAX_NORMALIZED || scoring == KVB_ROUTE_SIGMOID_NORMALIZED;
  double* const keys = c.program.numbers();
  for (uint64_t r = 0; r < x.rows; ++r) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, chosen = 0;
    for (uint32_t e = 0; e < x.width; ++e) largest = std::max(largest, double{x.row(r)[e]});
    for (uint32_t e = 0; e < x.width; ++e) sum += std::exp(x.row(r)[e] - largest);
    const auto score = [&](int32_t e) { return route_score(scoring, x.row(r)[e], largest, sum); };
    for (uint32_t e = 0; e < x.width; ++e) {
      keys[e] = score(static_cast<int32_t>(e)) + (bias != nullptr ? double{bias[e]} : 0);
    }
    const uint32_t groups = c.param(4) & 0xffff, groups_used = c.param(4) >> 16;
    if (groups > 1) keep_best_groups(keys, x.width, groups, groups_used);
    auto* const id = reinterpret_cast<int32_t*>(ids.row(r));
    int32_t last = -1;
    bool broken = false;
    for (uint32_t k = 0; k < weights.width; ++k) {
      last = broken ? -1 : next_largest(keys, x.width, last);
      broken = last < 0;  // NaN among the scores: any id will do, the weights below become NaN
      id[k] = broken ? 0 : last;
      chosen += broken ? std::numeric_limits<double>::quiet_NaN() : score(last);
    }
    for (uint32_t k = 0; k < weights.width; ++k) {
      const double weight = normalized || broken ? score(id[k]) / chosen : score(id[k]);
      weights.row(r)[k] = static_cast<float>(weight * double{c.real(3)});
    }
  }
  return KV_OK;
}

kv_status moe_linear(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const Matrix ids = c.in(3);
  const Weight& weight = c.weight(1);
  float* const row = c.program.row(0);
  float* const bias = c.program.row(1);
  for (uint64_t r = 0; r < y.rows; ++r) {
    const auto expert = static_cast<uint32_t>(reinterpret_cast<const int32_t*>(ids.data)[r]);
    const float* from = x.row(x.rows == y.rows ? r : r / ids.width);
    if (c.has(2)) c.weight(2).read_row(expert / c.weight(2).rows(), expert % c.weight(2).rows(), bias);
    for (uint32_t i = 0; i < y.width; ++i) {
      if (c.stopped()) return KV_CANCELLED;
      weight.read_row(expert, i, row);
      y.row(r)[i] = static_cast<float>(dot(from, row, x.width));
      if (c.has(2)) y.row(r)[i] += bias[i];
    }
  }
  return KV_OK;
}

kv_status moe_sum(const OpContext& c) {
  const Matrix x = c.in(0);
  const Matrix y = c.out();
  const Matrix weights = c.in(1);
  for (uint64_t r = 0; r < y.rows; ++r) {
    for (uint32_t i = 0; i < y.width; ++i) {
      double sum = 0;
      for (uint32_t e = 0; e < weights.width; ++e) sum += double{weights.row(r)[e]} * x.row(r * weights.width + e)[i];
      y.row(r)[i] = static_cast<float>(sum);
    }
  }
  return KV_OK;
}

// NaN comes last: its places get the index 0 and the value NaN.
kv_status top_k(const OpContext& c) {
  const Matrix x = c.in(0);
  double* const keys = c.program.numbers();
  for (uint64_t r = 0; r < x.rows; ++r) {
    std::copy_n(x.row(r), x.width, keys);
    auto* const id = reinterpret_cast<int32_t*>(c.out(1).row(r));
    int32_t last = -1;
    bool exhausted = false;
    for (uint32_t k = 0; k < c.param(0); ++k) {
      last = exhausted ? -1 : next_largest(keys, x.width, last);
      exhausted = last < 0;
      id[k] = exhausted ? 0 : last;
      c.out().row(r)[k] = exhausted ? std::numeric_limits<float>::quiet_NaN() : x.row(r)[last];
    }
  }
  // The host gets the ids behind the scores.
  if (c.program.code().output == c.op().out[0]) {
    std::memcpy(c.out().data + x.rows * c.param(0), c.out(1).data, x.rows * c.param(0) * sizeof(int32_t));
  }
  return KV_OK;
}

}  // namespace

kv_status run_op(const OpContext& context) {
  switch (context.op().code) {
    case KVB_OP_EMBED: return embed(context);
    case KVB_OP_RMS_NORM: return rms_norm(context);
    case KVB_OP_LINEAR: return linear(context);
    case KVB_OP_ROPE: return rope(context);
    case KVB_OP_KV_STORE: return kv_store(context);
    case KVB_OP_ATTENTION: return attention(context);
    case KVB_OP_GLU: return glu(context);
    case KVB_OP_ADD: return add(context);
    case KVB_OP_SELECT_ROWS: return select_rows(context);
    case KVB_OP_LAYER_NORM: return layer_norm(context);
    case KVB_OP_ACTIVATION: return activation(context);
    case KVB_OP_SCALE: return scale(context);
    case KVB_OP_SOFTCAP: return softcap(context);
    case KVB_OP_COPY_HEADS: return copy_heads(context);
    case KVB_OP_HEAD_LINEAR: return head_linear(context);
    case KVB_OP_MOE_ROUTE: return moe_route(context);
    case KVB_OP_MOE_LINEAR: return moe_linear(context);
    case KVB_OP_MOE_SUM: return moe_sum(context);
    case KVB_OP_TOP_K: return top_k(context);
    default: return KV_INTERNAL;  // verified programs have no other code
  }
}

}  // namespace kvasir::ref
