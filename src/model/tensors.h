// SPDX-License-Identifier: MIT
//
// Which tensors a configuration needs, and whether a WeightSource has them in the right shape. Used for files and for
// the builder alike, so that both are refused in the same words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/weights.h"

namespace kvasir {

struct TensorSpec {
  std::string name;
  uint64_t dims[2] = {0, 0};  // dims[1] == 0: a vector
  bool optional = false;      // may be absent (biases); its shape is checked all the same
};

// Those outside the layers, and those of one layer. `config` must have passed validate.
std::vector<TensorSpec> shared_tensors(const ModelConfig& config);
std::vector<TensorSpec> layer_tensors(const ModelConfig& config, uint32_t layer);

// Says exactly which tensor is missing (KV_NOT_FOUND) or misshapen (KV_INVALID_ARGUMENT).
Status check_tensors(const ModelConfig& config, const WeightSource& weights);

}  // namespace kvasir
