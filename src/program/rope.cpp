// SPDX-License-Identifier: MIT
#include "program/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace kvasir {

namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between blended.
// Source: the model card's reference code, "apply_scaling".
double scale_llama3(double frequency, const RopeConfig& rope) {
  const double length = rope.original_context;
  const double wave = kTurn / frequency;
  const double low = rope.llama3_low_frequency_factor;
  const double high = rope.llama3_high_frequency_factor;
  if (wave < length / high) return frequency;
  if (wave > length / low) return frequency / rope.factor;
  const double smooth = (length / wave - low) / (high - low);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

// The pair that makes `turns` full turns over the trained length.
double yarn_pair(double turns, const RopeConfig& rope) {
  return rope.dims * std::log(rope.original_context / (turns * kTurn)) /
         (2.0 * std::log(static_cast<double>(rope.theta)));
}

// YaRN (Peng et al. 2023, "NTK-by-parts"): pairs that turn often keep their frequency, those that turn less than
// beta_slow times are interpolated, a linear ramp between.
double scale_yarn(double frequency, uint32_t pair, const RopeConfig& rope) {
  const double first = std::max(0.0, std::floor(yarn_pair(rope.yarn_beta_fast, rope)));
  const double last = std::min(rope.dims - 1.0, std::ceil(yarn_pair(rope.yarn_beta_slow, rope)));
  const double ramp = std::clamp((pair - first) / std::max(0.001, last - first), 0.0, 1.0);
  return ramp * frequency / rope.factor + (1.0 - ramp) * frequency;
}

Status read_factors(const RopeConfig& rope, const WeightSource& weights, std::vector<float>* out) {
  const auto index = weights.find(rope.factors_tensor);
  KV_CHECK(index, KV_NOT_FOUND, "tensor '%s' with the rotary factors is missing", rope.factors_tensor.c_str());
  const TensorInfo& info = weights.info(*index);
  KV_CHECK(info.type == KV_TYPE_F32 && info.bytes == rope.dims / 2 * sizeof(float), KV_INVALID_ARGUMENT,
           "tensor '%s' is %s, expected [%u] in f32", info.name.c_str(), dims_text(info).c_str(), rope.dims / 2);
  std::vector<float> factors(rope.dims / 2);
  KV_RETURN_IF_ERROR(weights.read(*index, 0, factors.data(), info.bytes));
  for (const float factor : factors) {
    KV_CHECK(std::isfinite(factor) && factor > 0.0F, KV_CORRUPT, "tensor '%s' holds the rotary factor %g",
             info.name.c_str(), static_cast<double>(factor));
  }
  *out = std::move(factors);
  return {};
}

}  // namespace

Status make_rope_table(const RopeConfig& rope, const WeightSource& weights, RopeTable* out) {
  std::vector<float> factors;
  if (!rope.factors_tensor.empty()) KV_RETURN_IF_ERROR(read_factors(rope, weights, &factors));

  RopeTable table;
  table.frequency.resize(rope.dims / 2);
  for (uint32_t i = 0; i < rope.dims / 2; i++) {
    double frequency = std::pow(static_cast<double>(rope.theta), -2.0 * i / rope.dims);
    if (!factors.empty()) frequency /= static_cast<double>(factors[i]);
    switch (rope.scaling) {
      case RopeScaling::none: break;
      case RopeScaling::linear: frequency /= rope.factor; break;
      case RopeScaling::llama3: frequency = scale_llama3(frequency, rope); break;
      case RopeScaling::yarn: frequency = scale_yarn(frequency, i, rope); break;
    }
    table.frequency[i] = frequency;
  }
  if (rope.scaling == RopeScaling::yarn) {
    table.magnitude =
        static_cast<float>(rope.yarn_attention_factor * (1.0 + 0.1 * std::log(static_cast<double>(rope.factor))));
  }
  *out = std::move(table);
  return {};
}

}  // namespace kvasir
