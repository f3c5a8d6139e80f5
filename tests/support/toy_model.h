// SPDX-License-Identifier: MIT
//
// Small models made through the public builder: the worked examples, and random decoders of any shape (case fixtures F3
// to F6 and F8).
#pragma once

#include <cmath>
#include <random>

#include "support/kv.h"

namespace kvasir::test {

using Matrix = std::vector<std::vector<float>>;

// Examples are written as x W; tensors are [out, in]: the transpose.
inline std::vector<float> transposed(const Matrix& w) {
  std::vector<float> out;
  for (size_t o = 0; o < w[0].size(); o++) {
    for (const auto& row : w) out.push_back(row[o]);
  }
  return out;
}

inline void add_tensor(kv_model_builder* builder, const std::string& name, uint32_t rows, uint32_t width,
                       const std::vector<float>& data) {
  Error e;
  OK(kv_model_builder_add(builder, name.c_str(), KV_TYPE_F32, rows, width, data.data(), data.size() * sizeof(float),
                          &e));
}

inline ModelPtr finish(kv_model_builder* builder) {
  Error e;
  kv_model* model = nullptr;
  if (kv_model_builder_finish(builder, &model, &e) != KV_OK) ADD_FAILURE() << e.message;
  return ModelPtr(model);
}

inline BuilderPtr make_builder(kv_runtime* runtime, const kv_model_config& config) {
  Error e;
  kv_model_builder* builder = nullptr;
  if (kv_model_builder_create(runtime, &config, &builder, &e) != KV_OK) ADD_FAILURE() << e.message;
  return BuilderPtr(builder);
}

// One attention layer and nothing else, as the worked examples have it. Matrices act as x W.
struct AttentionLayer {
  Matrix q, k, v;
};
inline ModelPtr attention_model(kv_runtime* runtime, uint32_t dim, float scale,
                                const std::vector<AttentionLayer>& layers) {
  kv_model_config config = sized<kv_model_config>();
  config.layers = static_cast<uint32_t>(layers.size());
  config.dim = dim;
  config.heads = 1;
  config.norm = KV_NORM_NONE;
  config.attention_scale = scale;
  config.no_residual = 1;
  config.no_output_projection = 1;
  const BuilderPtr builder = make_builder(runtime, config);
  for (size_t l = 0; l < layers.size(); l++) {
    const std::string prefix = "blk." + std::to_string(l) + ".";
    add_tensor(builder.get(), prefix + "attn_q.weight", dim, dim, transposed(layers[l].q));
    add_tensor(builder.get(), prefix + "attn_k.weight", dim, dim, transposed(layers[l].k));
    add_tensor(builder.get(), prefix + "attn_v.weight", dim, dim, transposed(layers[l].v));
  }
  return finish(builder.get());
}

// A random decoder; weights have unit gain so that logits stay of order one.
inline ModelPtr random_model(kv_runtime* runtime, const kv_model_config& config, uint32_t seed,
                             float output_gain = 1.0F) {
  const BuilderPtr builder = make_builder(runtime, config);
  std::mt19937 rng(seed);
  const auto random = [&](const std::string& name, uint32_t rows, uint32_t width, float gain) {
    std::vector<float> data(size_t{rows} * width);
    for (float& x : data) {
      x = gain * (static_cast<float>(rng() >> 8) / 8388608.0F - 1.0F) * std::sqrt(3.0F / static_cast<float>(width));
    }
    add_tensor(builder.get(), name, rows, width, data);
  };
  const auto ones = [&](const std::string& name, uint32_t width) {
    add_tensor(builder.get(), name, 1, width, std::vector<float>(width, 1.0F));
  };
  const uint32_t head_dim = config.head_dim != 0 ? config.head_dim : config.dim / config.heads;
  const uint32_t kv_heads = config.kv_heads != 0 ? config.kv_heads : config.heads;
  random("token_embd.weight", config.vocab, config.dim, std::sqrt(static_cast<float>(config.dim)));
  for (uint32_t l = 0; l < config.layers; l++) {
    const std::string p = "blk." + std::to_string(l) + ".";
    ones(p + "attn_norm.weight", config.dim);
    random(p + "attn_q.weight", config.heads * head_dim, config.dim, 1.5F);
    random(p + "attn_k.weight", kv_heads * head_dim, config.dim, 1.5F);
    random(p + "attn_v.weight", kv_heads * head_dim, config.dim, 1.0F);
    random(p + "attn_output.weight", config.dim, config.heads * head_dim, 1.0F);
    ones(p + "ffn_norm.weight", config.dim);
    random(p + "ffn_gate.weight", config.ffn_dim, config.dim, 1.0F);
    random(p + "ffn_up.weight", config.ffn_dim, config.dim, 1.0F);
    random(p + "ffn_down.weight", config.dim, config.ffn_dim, 1.0F);
  }
  ones("output_norm.weight", config.dim);
  random("output.weight", config.vocab, config.dim, output_gain);
  return finish(builder.get());
}

// Case fixture F3: vocab 64, dim 32, 4 query heads over 2 kv heads of 8, 2 layers, rotary.
inline kv_model_config small_config() {
  kv_model_config config = sized<kv_model_config>();
  config.layers = 2;
  config.dim = 32;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.ffn_dim = 64;
  config.vocab = 64;
  config.context_length = 64;
  config.rope = KV_ROPE_ADJACENT;
  return config;
}

inline std::vector<int32_t> random_tokens(size_t count, uint32_t vocab, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& t : tokens) t = static_cast<int32_t>(rng() % vocab);
  return tokens;
}

}  // namespace kvasir::test
