// SPDX-License-Identifier: MIT
//
// Program: a model lowered once to a flat list of ops (kvasir/ops.h) over values, device-free and independent of how
// many tokens a step has. Made by a Builder in src/arch; planned (plan.h) and compiled per bucket in src/runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/backend.h"

namespace kvasir {

// A tensor that the program reads. `place` of a weight value is the index of one of these.
struct WeightUse {
  size_t tensor = 0;    // index in the model's WeightSource
  bool vector = false;  // norm weights and biases: handed to the backend as f32
};

// Layers whose cache rows have the same shape share one group. The types are chosen later, by the context.
struct CacheShape {
  uint32_t kv_heads = 0;
  uint32_t k_dim = 0;
  uint32_t v_dim = 0;
  uint32_t window = 0;  // 0: full attention

  bool operator==(const CacheShape&) const = default;
};

struct Program {
  std::vector<kvb_value> values;
  std::vector<kvb_op> ops;
  std::vector<const char*> names;  // [ops] what out[0] is called in traces; static storage
  std::vector<double> blob;        // rotary parameters, see kvb_rope
  std::vector<WeightUse> weights;
  std::vector<CacheShape> cache_groups;
  std::vector<uint32_t> layer_group;  // [layers]
  uint32_t input_width = 0;           // dim: floats in an embedding row
  uint32_t output_width = 0;          // floats in an output row
  bool takes_tokens = true;           // false: embedding rows only
};

}  // namespace kvasir
