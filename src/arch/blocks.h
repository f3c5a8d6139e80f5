// SPDX-License-Identifier: MIT
//
// Stages that families have in common, each a canonical group of kvasir/ops.h. A family file puts them in order.
#pragma once

#include <string>

#include "program/builder.h"

namespace kvasir::arch {

using Value = Builder::Value;

// "blk.3." + name
std::string in_layer(uint32_t layer, const char* name);

struct Qkv {
  Value q, k, v;
};

// The layer's cache rows, from the configuration.
CacheShape cache_shape(const ModelConfig& config, uint32_t layer);

// q, k, v = W_q h, W_k h, W_v h with h = norm(x), or x itself where the model has no norms.
Qkv normed_qkv(Builder& b, Value x, uint32_t layer);

// Rotates q and k (after their own norms, where the model has them) and appends k and v to the cache.
void rotate_and_store(Builder& b, const Qkv& qkv, uint32_t layer);

// x += W_o attention(q)
Value attend(Builder& b, Value q, Value x, uint32_t layer);

// x += W_down (act(W_gate h) * W_up h) with h = norm(x)
Value gated_ffn(Builder& b, Value x, uint32_t layer);

// logits = W_out norm(x) of the selected rows; hidden rows where there is no output head
void head(Builder& b, Value x);

}  // namespace kvasir::arch
