// SPDX-License-Identifier: MIT
//
// config_from_gguf: GGUF's keys ("llama.attention.head_count") to a ModelConfig. The only place that knows those names.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>

#include "model/config.h"
#include "model/gguf.h"
#include "model/printable.h"

namespace kvasir {
namespace {

struct Family {
  const char* architecture;
  RopePairing pairing;
  bool qk_norm;
};

constexpr Family kFamilies[] = {
    {"llama", RopePairing::adjacent, false},
    {"qwen2", RopePairing::halves, false},
    {"qwen3", RopePairing::halves, true},
};

std::string supported_architectures() {
  std::string names;
  for (const Family& family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family.architecture);
  return names;
}

// Reads one file's keys into one config; every function names the key it is not content with.
class ConfigReader {
 public:
  ConfigReader(const Gguf& gguf, ModelConfig* config) : gguf_(gguf), config_(*config) {}

  Status read();

 private:
  Status read_family();
  Status read_widths();
  Status read_heads();
  Status read_vocab();
  Status read_rope();
  Status read_rope_scaling();

  std::string key(const char* name) const { return config_.architecture + "." + name; }

  // A count that must be there and is not zero.
  Status count(const char* name, uint32_t* value) const;
  // The same, one number for all layers or an array of one for each.
  Status count_by_layer(const char* name, uint32_t* value, std::vector<uint32_t>* by_layer) const;
  // A positive number, if it is there.
  Status positive(const char* name, float* value) const;
  // The same; 0 means none.
  Status scaling_factor(const char* name, float* value) const;

  const Gguf& gguf_;
  ModelConfig& config_;
  Family family_ = {};
};

Status not_zero(const std::string& key, uint32_t value) {
  KV_CHECK(value != 0, KV_CORRUPT, "key '%s' is 0", key.c_str());
  return {};
}

Status ConfigReader::count(const char* name, uint32_t* value) const {
  KV_RETURN_IF_ERROR(gguf_.require(key(name), value));
  return not_zero(key(name), *value);
}

Status ConfigReader::count_by_layer(const char* name, uint32_t* value, std::vector<uint32_t>* by_layer) const {
  const auto found = gguf_.find(key(name));
  if (!found || found->type != GgufType::array) return count(name, value);
  std::vector<uint32_t> values;
  KV_RETURN_IF_ERROR(found->as_u32s(&values));
  KV_CHECK(values.size() == config_.layers, KV_CORRUPT, "key '%s' has %zu values, the model has %" PRIu32 " layers",
           key(name).c_str(), values.size(), config_.layers);
  for (const uint32_t v : values) KV_RETURN_IF_ERROR(not_zero(key(name), v));
  *value = values.front();
  const bool uniform = std::all_of(values.begin(), values.end(), [&](uint32_t v) { return v == values.front(); });
  if (!uniform) *by_layer = std::move(values);
  return {};
}

Status ConfigReader::positive(const char* name, float* value) const {
  float read = *value;
  KV_RETURN_IF_ERROR(gguf_.get(key(name), &read));
  KV_CHECK(std::isfinite(read) && read > 0.0F, KV_CORRUPT, "key '%s' is %s, expected a positive number",
           key(name).c_str(), gguf_.find(key(name))->text().c_str());
  *value = read;
  return {};
}

Status ConfigReader::scaling_factor(const char* name, float* value) const {
  float read = *value;
  KV_RETURN_IF_ERROR(gguf_.get(key(name), &read));
  if (read != 0.0F) return positive(name, value);
  *value = read;
  return {};
}

Status ConfigReader::read_family() {
  KV_RETURN_IF_ERROR(gguf_.require("general.architecture", &config_.architecture));
  KV_RETURN_IF_ERROR(gguf_.get("general.name", &config_.name));
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& candidate) {
    return config_.architecture == candidate.architecture;
  });
  const std::string printed = printable(config_.architecture);
  KV_CHECK(family != std::end(kFamilies), KV_UNSUPPORTED, "architecture '%s' is not supported; supported are %s",
           printed.c_str(), supported_architectures().c_str());
  family_ = *family;
  uint32_t experts = 0;
  KV_RETURN_IF_ERROR(gguf_.get(key("expert_count"), &experts));
  KV_CHECK(experts == 0, KV_UNSUPPORTED, "architecture '%s' with %" PRIu32 " experts is not supported yet",
           printed.c_str(), experts);
  return {};
}

Status ConfigReader::read_widths() {
  KV_RETURN_IF_ERROR(count("block_count", &config_.layers));
  KV_CHECK(config_.layers <= 65535, KV_CORRUPT, "key '%s' is %" PRIu32 ", at most 65535 layers are possible",
           key("block_count").c_str(), config_.layers);
  KV_RETURN_IF_ERROR(count("embedding_length", &config_.dim));
  KV_RETURN_IF_ERROR(count_by_layer("feed_forward_length", &config_.ffn_dim, &config_.layer_ffn_dim));
  KV_RETURN_IF_ERROR(gguf_.get(key("context_length"), &config_.context_length));
  KV_RETURN_IF_ERROR(gguf_.require(key("attention.layer_norm_rms_epsilon"), &config_.norm_eps));
  return positive("attention.layer_norm_rms_epsilon", &config_.norm_eps);
}

Status ConfigReader::read_heads() {
  KV_RETURN_IF_ERROR(count_by_layer("attention.head_count", &config_.heads, &config_.layer_heads));
  config_.kv_heads = config_.heads;
  config_.layer_kv_heads = config_.layer_heads;
  if (gguf_.find(key("attention.head_count_kv"))) {
    config_.layer_kv_heads.clear();
    KV_RETURN_IF_ERROR(count_by_layer("attention.head_count_kv", &config_.kv_heads, &config_.layer_kv_heads));
  }
  for (uint32_t layer = 0; layer < config_.layers; ++layer) {
    KV_CHECK(config_.heads_at(layer) % config_.kv_heads_at(layer) == 0, KV_CORRUPT,
             "key '%s' is %" PRIu32 " and '%s' is %" PRIu32 ": the heads cannot share them evenly",
             key("attention.head_count").c_str(), config_.heads_at(layer), key("attention.head_count_kv").c_str(),
             config_.kv_heads_at(layer));
  }
  if (gguf_.find(key("attention.key_length"))) {
    KV_RETURN_IF_ERROR(count("attention.key_length", &config_.head_dim));
  } else {
    KV_CHECK(config_.dim % config_.heads == 0, KV_CORRUPT,
             "key '%s' is %" PRIu32 ", no multiple of '%s', %" PRIu32 ", and there is no '%s'",
             key("embedding_length").c_str(), config_.dim, key("attention.head_count").c_str(), config_.heads,
             key("attention.key_length").c_str());
    config_.head_dim = config_.dim / config_.heads;
  }
  config_.v_head_dim = config_.head_dim;
  if (gguf_.find(key("attention.value_length"))) {
    KV_RETURN_IF_ERROR(count("attention.value_length", &config_.v_head_dim));
  }
  return {};
}

// The embedding table decides; the keys, which tools write less carefully, count in files without tensors.
Status ConfigReader::read_vocab() {
  const TensorInfo* table = gguf_.find_tensor("token_embd.weight");
  if (table != nullptr) {
    KV_CHECK(table->dims[1] <= UINT32_MAX, KV_CORRUPT, "tensor 'token_embd.weight' is %s", dims_text(*table).c_str());
    config_.vocab = static_cast<uint32_t>(table->dims[1]);
    config_.tied_output = gguf_.find_tensor("output.weight") == nullptr;
    return {};
  }
  if (gguf_.find(key("vocab_size"))) return count("vocab_size", &config_.vocab);
  const auto tokens = gguf_.find("tokenizer.ggml.tokens");
  KV_CHECK(tokens && tokens->type == GgufType::array && tokens->count >= 1 && tokens->count <= UINT32_MAX, KV_CORRUPT,
           "the file has neither tensor 'token_embd.weight' nor key '%s' nor a list of tokens",
           key("vocab_size").c_str());
  config_.vocab = static_cast<uint32_t>(tokens->count);
  return {};
}

Status ConfigReader::read_rope() {
  RopeConfig& rope = config_.rope;
  rope.pairing = family_.pairing;
  rope.dims = config_.head_dim;
  if (gguf_.find(key("rope.dimension_count"))) KV_RETURN_IF_ERROR(count("rope.dimension_count", &rope.dims));
  KV_CHECK(rope.dims % 2 == 0 && rope.dims <= config_.head_dim, KV_CORRUPT,
           "key '%s' is %" PRIu32 ", expected an even number of at most %" PRIu32 ", the width of a head",
           key("rope.dimension_count").c_str(), rope.dims, config_.head_dim);
  KV_RETURN_IF_ERROR(positive("rope.freq_base", &rope.theta));
  if (gguf_.find_tensor("rope_freqs.weight") != nullptr) rope.factors_tensor = "rope_freqs.weight";
  return read_rope_scaling();
}

Status ConfigReader::read_rope_scaling() {
  RopeConfig& rope = config_.rope;
  // A factor without a type is an old linear one, under either of two names.
  std::string type = "linear";
  float factor = 0.0F;
  KV_RETURN_IF_ERROR(scaling_factor("rope.scale_linear", &factor));
  KV_RETURN_IF_ERROR(scaling_factor("rope.scaling.factor", &factor));
  KV_RETURN_IF_ERROR(gguf_.get(key("rope.scaling.type"), &type));
  KV_CHECK(type == "none" || type == "linear" || type == "yarn", KV_UNSUPPORTED,
           "key '%s' is '%s', supported are none, linear and yarn", key("rope.scaling.type").c_str(),
           printable(type).c_str());
  if (type == "none" || factor == 0.0F) return {};
  rope.scaling = type == "yarn" ? RopeScaling::yarn : RopeScaling::linear;
  rope.factor = factor;
  if (rope.scaling == RopeScaling::linear) return {};
  rope.original_context = config_.context_length;
  if (gguf_.find(key("rope.scaling.original_context_length"))) {
    KV_RETURN_IF_ERROR(count("rope.scaling.original_context_length", &rope.original_context));
  }
  KV_RETURN_IF_ERROR(positive("rope.scaling.attn_factor", &rope.yarn_attention_factor));
  KV_RETURN_IF_ERROR(positive("rope.scaling.yarn_attn_factor", &rope.yarn_attention_factor));
  KV_RETURN_IF_ERROR(positive("rope.scaling.yarn_beta_fast", &rope.yarn_beta_fast));
  return positive("rope.scaling.yarn_beta_slow", &rope.yarn_beta_slow);
}

Status ConfigReader::read() {
  KV_RETURN_IF_ERROR(read_family());
  config_.qk_norm = family_.qk_norm;
  KV_RETURN_IF_ERROR(read_widths());
  KV_RETURN_IF_ERROR(read_heads());
  KV_RETURN_IF_ERROR(read_vocab());
  return read_rope();
}

}  // namespace

Status config_from_gguf(const Gguf& gguf, ModelConfig* out) {
  ModelConfig config;
  KV_RETURN_IF_ERROR(ConfigReader(gguf, &config).read());
  const Status status = validate(config);
  KV_CHECK(status.ok(), KV_CORRUPT, "the file's configuration is impossible: %s", status.message());
  *out = std::move(config);
  return {};
}

}  // namespace kvasir
