// SPDX-License-Identifier: MIT
//
// Rotary frequencies: every way of scaling them (linear, YaRN, Llama 3, per-dimension factors) reduced to one table of
// angles per position, so that backends know none of the ways.
#pragma once

#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/weights.h"

namespace kvasir {

struct RopeTable {
  std::vector<double> frequency;  // [dims / 2] radians per position
  float magnitude = 1.0F;         // multiplies cosine and sine
};

// `weights` is asked for rope.factors_tensor when that is named.
Status make_rope_table(const RopeConfig& rope, const WeightSource& weights, RopeTable* out);

}  // namespace kvasir
