// SPDX-License-Identifier: MIT
//
// Random weights for any configuration and weight type, as named tensors (for the builder) and as a GGUF file. The same
// seed gives the same bytes on every machine. Compressed weights are random codes under fitting scales, so that every
// type can be made without a quantiser.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/config.h"
#include "model/half.h"
#include "model/tensors.h"
#include "model/types.h"
#include "model/weights.h"
#include "support/gguf_writer.h"

namespace kvasir::testing {

// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  uint8_t byte() { return static_cast<uint8_t>(next() >> 56); }
  // In [-1, 1), standard deviation 1 / sqrt(3).
  float uniform() { return static_cast<float>(static_cast<int64_t>(next()) >> 40) * 0x1p-23F; }

 private:
  uint64_t state_;
};

// How a compressed type turns random bytes into values: where its f16 scale lies and how large a scale gives standard
// deviation 1; where the scale of a minimum lies, and its ratio to the first that gives mean 0.
struct RandomBlock {
  uint32_t scale_at;
  float scale;
  uint32_t minimum_at;  // 0: none
  float minimum_ratio;
};

inline RandomBlock random_block(uint32_t type) {
  switch (type) {
    case KV_TYPE_Q8_0: return {0, 1.0F / 74.0F, 0, 0.0F};
    case KV_TYPE_Q4_0: return {0, 1.0F / 4.6F, 0, 0.0F};
    case KV_TYPE_Q4_1: return {0, 1.0F / 4.6F, 2, -7.5F};
    case KV_TYPE_Q5_0: return {0, 1.0F / 9.2F, 0, 0.0F};
    case KV_TYPE_Q5_1: return {0, 1.0F / 9.2F, 2, -15.5F};
    case KV_TYPE_Q2_K: return {80, 1.0F / 14.0F, 82, 1.5F};
    case KV_TYPE_Q3_K: return {108, 1.0F / 43.0F, 0, 0.0F};
    case KV_TYPE_Q4_K: return {0, 1.0F / 258.0F, 2, 7.5F};
    case KV_TYPE_Q5_K: return {0, 1.0F / 530.0F, 2, 15.5F};
    case KV_TYPE_Q6_K: return {208, 1.0F / 1367.0F, 0, 0.0F};
    case KV_TYPE_IQ4_NL: return {0, 1.0F / 70.0F, 0, 0.0F};
    default: return {0, 1.0F / 1300.0F, 0, 0.0F};  // IQ4_XS
  }
}

inline void put_u16(uint16_t value, uint8_t* at) { std::memcpy(at, &value, sizeof value); }

// `values` random numbers of mean near `mean` and standard deviation near `deviation`. Compressed types have mean 0.
inline std::vector<uint8_t> random_values(uint32_t type, uint64_t values, float mean, float deviation, Random* random) {
  uint64_t size = 0;
  if (!row_bytes(type, values, &size)) return {};
  std::vector<uint8_t> data(size);
  const TypeInfo& info = *type_info(type);
  if (info.block_values == 1) {
    for (uint64_t i = 0; i < values; ++i) {
      const float x = mean + deviation * std::sqrt(3.0F) * random->uniform();
      uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      if (type == KV_TYPE_F32) std::memcpy(&data[4 * i], &bits, sizeof bits);
      if (type == KV_TYPE_F16) put_u16(f32_to_f16(x), &data[2 * i]);
      if (type == KV_TYPE_BF16) put_u16(static_cast<uint16_t>(bits >> 16), &data[2 * i]);
    }
    return data;
  }
  const RandomBlock block = random_block(type);
  for (uint8_t& byte : data) byte = random->byte();
  for (uint64_t at = 0; at < size; at += info.block_bytes) {
    const float scale = deviation * block.scale * (1.0F + 0.2F * random->uniform());
    put_u16(f32_to_f16(scale), &data[at + block.scale_at]);
    if (block.minimum_at != 0) put_u16(f32_to_f16(scale * block.minimum_ratio), &data[at + block.minimum_at]);
  }
  return data;
}

struct RandomTensor {
  TensorInfo info;
  std::vector<uint8_t> data;
};

// Matrices in `type`, or in f16 where a row is no whole number of blocks; vectors in f32. Optional tensors (biases) come
// with `biases`. Empty when the configuration is wrong.
inline std::vector<RandomTensor> random_tensors(const ModelConfig& config, uint32_t type, uint64_t seed,
                                                bool biases = false) {
  std::vector<RandomTensor> tensors;
  if (!validate(config).ok()) return tensors;
  Random random(seed);
  const auto add = [&](const TensorSpec& spec) {
    if (spec.optional && !biases) return;
    RandomTensor tensor;
    tensor.info.name = spec.name;
    const bool vector = spec.dims[1] == 0;
    tensor.info.type = type;
    if (vector) tensor.info.type = KV_TYPE_F32;
    if (spec.dims[0] % type_info(tensor.info.type)->block_values != 0) tensor.info.type = KV_TYPE_F16;
    tensor.info.dim_count = vector ? 1 : 2;
    tensor.info.dims[0] = spec.dims[0];
    tensor.info.dims[1] = vector ? 1 : spec.dims[1];
    if (!complete_tensor_info(&tensor.info).ok()) return;
    const bool table = spec.name == "token_embd.weight";
    const float mean = vector && !spec.optional ? 1.0F : 0.0F;
    const float deviation = vector ? 0.1F : table ? 1.0F : 1.0F / std::sqrt(static_cast<float>(spec.dims[0]));
    tensor.data = random_values(tensor.info.type, spec.dims[0] * tensor.info.rows, mean, deviation, &random);
    tensors.push_back(std::move(tensor));
  };
  for (const TensorSpec& spec : shared_tensors(config)) add(spec);
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    for (const TensorSpec& spec : layer_tensors(config, layer)) add(spec);
  }
  return tensors;
}

// A small llama-shaped configuration to start from (fixture F3 of the bad-input cases).
inline ModelConfig small_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.name = "random";
  config.layers = 2;
  config.dim = 32;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.v_head_dim = 8;
  config.ffn_dim = 64;
  config.vocab = 64;
  config.context_length = 64;
  config.rope.pairing = RopePairing::adjacent;
  config.rope.dims = 8;
  return config;
}

// The keys of a llama, qwen2 or qwen3 file.
inline GgufWriter gguf_keys(const ModelConfig& config) {
  GgufWriter writer;
  const std::string prefix = config.architecture + ".";
  writer.string("general.architecture", config.architecture).string("general.name", config.name);
  writer.u32(prefix + "block_count", config.layers).u32(prefix + "embedding_length", config.dim);
  writer.u32(prefix + "context_length", config.context_length).u32(prefix + "feed_forward_length", config.ffn_dim);
  writer.u32(prefix + "attention.head_count", config.heads);
  writer.u32(prefix + "attention.head_count_kv", config.kv_heads);
  writer.u32(prefix + "attention.key_length", config.head_dim);
  writer.u32(prefix + "attention.value_length", config.v_head_dim);
  writer.f32(prefix + "attention.layer_norm_rms_epsilon", config.norm_eps);
  writer.u32(prefix + "rope.dimension_count", config.rope.dims).f32(prefix + "rope.freq_base", config.rope.theta);
  if (config.rope.scaling == RopeScaling::linear || config.rope.scaling == RopeScaling::yarn) {
    const bool yarn = config.rope.scaling == RopeScaling::yarn;
    writer.string(prefix + "rope.scaling.type", yarn ? "yarn" : "linear");
    writer.f32(prefix + "rope.scaling.factor", config.rope.factor);
    if (yarn) writer.u32(prefix + "rope.scaling.original_context_length", config.rope.original_context);
  }
  writer.u32(prefix + "vocab_size", config.vocab);
  return writer;
}

// The whole file. `more` may add keys, a vocabulary say.
inline std::vector<uint8_t> random_gguf(const ModelConfig& config, uint32_t type, uint64_t seed, bool biases = false,
                                        const std::function<void(GgufWriter*)>& more = nullptr) {
  GgufWriter writer = gguf_keys(config);
  if (more) more(&writer);
  for (RandomTensor& tensor : random_tensors(config, type, seed, biases)) {
    std::vector<uint64_t> dims(tensor.info.dims, tensor.info.dims + tensor.info.dim_count);
    writer.tensor(tensor.info.name, tensor.info.type, std::move(dims), std::move(tensor.data));
  }
  return writer.bytes();
}

}  // namespace kvasir::testing
