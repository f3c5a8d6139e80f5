// SPDX-License-Identifier: MIT
//
// validate: what every ModelConfig must satisfy, whoever made it.
#include "model/config.h"

#include <cinttypes>
#include <cmath>

namespace kvasir {
namespace {

constexpr uint32_t kMaxLayers = 65535;
constexpr uint32_t kMaxWidth = uint32_t{1} << 24;  // of a row; products of widths stay far below 64 bits
constexpr uint32_t kMaxExperts = 65535;

Status check_width(const char* what, uint64_t value) {
  KV_CHECK(value >= 1 && value <= kMaxWidth, KV_INVALID_ARGUMENT,
           "%s is %" PRIu64 ", between 1 and %" PRIu32 " is possible", what, value, kMaxWidth);
  return {};
}

// The value itself is not printed: that would depend on the locale.
Status check_real(const char* what, float value, bool zero_allowed) {
  KV_CHECK(std::isfinite(value), KV_INVALID_ARGUMENT, "%s is %s", what,
           std::isnan(value) ? "not a number" : "infinite");
  KV_CHECK(value >= 0.0F, KV_INVALID_ARGUMENT, "%s is negative", what);
  KV_CHECK(zero_allowed || value > 0.0F, KV_INVALID_ARGUMENT, "%s is zero", what);
  return {};
}

template <typename Enum>
Status check_enum(const char* what, Enum value, Enum last) {
  KV_CHECK(value <= last, KV_INVALID_ARGUMENT, "%s is %d, which stands for nothing", what, static_cast<int>(value));
  return {};
}

Status check_layer_list(const char* what, const std::vector<uint32_t>& list, uint32_t layers) {
  KV_CHECK(list.empty() || list.size() == layers, KV_INVALID_ARGUMENT,
           "%s is given for %zu layers, the model has %" PRIu32, what, list.size(), layers);
  return {};
}

Status check_rope(const char* what, const RopeConfig& rope, uint32_t head_dim) {
  KV_RETURN_IF_ERROR(check_enum("the rope pairing", rope.pairing, RopePairing::halves));
  KV_RETURN_IF_ERROR(check_enum("the rope scaling", rope.scaling, RopeScaling::llama3));
  if (rope.pairing == RopePairing::none) return {};
  KV_CHECK(rope.dims >= 2 && rope.dims % 2 == 0 && rope.dims <= head_dim, KV_INVALID_ARGUMENT,
           "%s turns %" PRIu32 " dimensions, an even number of at most head_dim %" PRIu32 " is possible", what,
           rope.dims, head_dim);
  KV_RETURN_IF_ERROR(check_real("the rope base", rope.theta, false));
  if (rope.scaling == RopeScaling::none) return {};
  KV_RETURN_IF_ERROR(check_real("the rope scaling factor", rope.factor, false));
  if (rope.scaling == RopeScaling::linear) return {};
  KV_CHECK(rope.original_context > 0, KV_INVALID_ARGUMENT, "%s scales without its original context length", what);
  if (rope.scaling == RopeScaling::yarn) {
    KV_RETURN_IF_ERROR(check_real("yarn's attention factor", rope.yarn_attention_factor, false));
    KV_RETURN_IF_ERROR(check_real("yarn's beta_slow", rope.yarn_beta_slow, false));
    KV_RETURN_IF_ERROR(check_real("yarn's beta_fast", rope.yarn_beta_fast, false));
    KV_CHECK(rope.yarn_beta_slow <= rope.yarn_beta_fast, KV_INVALID_ARGUMENT,
             "yarn's beta_slow is greater than its beta_fast");
    return {};
  }
  KV_RETURN_IF_ERROR(check_real("llama3's low frequency factor", rope.llama3_low_frequency_factor, false));
  KV_RETURN_IF_ERROR(check_real("llama3's high frequency factor", rope.llama3_high_frequency_factor, false));
  KV_CHECK(rope.llama3_low_frequency_factor < rope.llama3_high_frequency_factor, KV_INVALID_ARGUMENT,
           "llama3's low frequency factor is not below its high frequency factor");
  return {};
}

Status check_layer(const ModelConfig& config, uint32_t layer) {
  const uint32_t heads = config.heads_at(layer);
  const uint32_t kv_heads = config.kv_heads_at(layer);
  KV_RETURN_IF_ERROR(check_width("the number of heads", heads));
  KV_RETURN_IF_ERROR(check_width("the number of kv heads", kv_heads));
  KV_CHECK(heads % kv_heads == 0, KV_INVALID_ARGUMENT,
           "layer %" PRIu32 " has %" PRIu32 " heads, which %" PRIu32 " kv heads cannot share evenly", layer, heads,
           kv_heads);
  KV_RETURN_IF_ERROR(check_width("heads times head_dim", uint64_t{heads} * config.head_dim));
  KV_RETURN_IF_ERROR(check_width("heads times v_head_dim", uint64_t{heads} * config.v_head_dim));
  KV_CHECK(config.attention_output || uint64_t{heads} * config.v_head_dim == config.dim, KV_INVALID_ARGUMENT,
           "layer %" PRIu32 " has no output projection, so %" PRIu32 " heads of %" PRIu32
           " must be as wide as the model, %" PRIu32,
           layer, heads, config.v_head_dim, config.dim);
  const bool routed = config.experts.count > 0 && layer >= config.experts.dense_layers;
  if (config.ffn != FfnKind::none && !routed) KV_RETURN_IF_ERROR(check_width("ffn_dim", config.ffn_dim_at(layer)));
  return {};
}

Status check_experts(const ModelConfig& config) {
  const ExpertConfig& experts = config.experts;
  if (experts.count == 0) return {};
  KV_CHECK(config.ffn != FfnKind::none, KV_INVALID_ARGUMENT, "the model has experts but no feed-forward part");
  KV_CHECK(experts.count <= kMaxExperts && experts.shared <= kMaxExperts, KV_INVALID_ARGUMENT,
           "%" PRIu32 " and %" PRIu32 " shared experts, at most %" PRIu32 " are possible", experts.count,
           experts.shared, kMaxExperts);
  KV_CHECK(experts.used >= 1 && experts.used <= experts.count, KV_INVALID_ARGUMENT,
           "%" PRIu32 " of %" PRIu32 " experts cannot be used per token", experts.used, experts.count);
  KV_CHECK(experts.dense_layers <= config.layers, KV_INVALID_ARGUMENT,
           "%" PRIu32 " dense layers are more than the model has, %" PRIu32, experts.dense_layers, config.layers);
  KV_RETURN_IF_ERROR(check_real("the scale of the experts", experts.scale, false));
  return check_width("ffn_dim of an expert", experts.ffn_dim);
}

Status check_latent(const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  if (latent.kv_rank == 0) return {};
  KV_RETURN_IF_ERROR(check_width("the rank of keys and values", latent.kv_rank));
  if (latent.q_rank > 0) KV_RETURN_IF_ERROR(check_width("the rank of queries", latent.q_rank));
  KV_CHECK(latent.rope_dims <= config.head_dim, KV_INVALID_ARGUMENT,
           "%" PRIu32 " rotated dimensions are more than head_dim, %" PRIu32, latent.rope_dims, config.head_dim);
  return {};
}

// The hidden row's way in and out.
Status check_ends(const ModelConfig& config) {
  KV_CHECK(!config.tied_output || (config.embedding && config.output), KV_INVALID_ARGUMENT,
           "an output head tied to the embedding needs both");
  if (config.embedding || config.output) KV_RETURN_IF_ERROR(check_width("vocab", config.vocab));
  KV_RETURN_IF_ERROR(check_real("the embedding scale", config.embedding_scale, false));
  return check_real("the soft cap of the logits", config.logit_softcap, true);
}

}  // namespace

Status validate(const ModelConfig& config) {
  KV_CHECK(!config.architecture.empty(), KV_INVALID_ARGUMENT, "the model names no architecture");
  KV_CHECK(config.layers >= 1 && config.layers <= kMaxLayers, KV_INVALID_ARGUMENT,
           "the number of layers is %" PRIu32 ", between 1 and %" PRIu32 " is possible", config.layers, kMaxLayers);
  KV_RETURN_IF_ERROR(check_width("dim", config.dim));
  KV_RETURN_IF_ERROR(check_width("head_dim", config.head_dim));
  KV_RETURN_IF_ERROR(check_width("v_head_dim", config.v_head_dim));
  KV_RETURN_IF_ERROR(check_ends(config));

  KV_RETURN_IF_ERROR(check_enum("the kind of norm", config.norm, NormKind::layer));
  KV_RETURN_IF_ERROR(check_enum("the kind of feed-forward", config.ffn, FfnKind::gated));
  KV_RETURN_IF_ERROR(check_enum("the activation", config.activation, Activation::relu));
  KV_RETURN_IF_ERROR(check_real("the epsilon of the norms", config.norm_eps, true));

  KV_RETURN_IF_ERROR(check_real("the attention scale", config.attention_scale, true));
  KV_RETURN_IF_ERROR(check_real("the soft cap of the scores", config.attention_softcap, true));
  KV_RETURN_IF_ERROR(check_rope("rope", config.rope, config.head_dim));
  KV_RETURN_IF_ERROR(check_rope("local rope", config.rope_local, config.head_dim));
  KV_RETURN_IF_ERROR(check_experts(config));
  KV_RETURN_IF_ERROR(check_latent(config));

  KV_RETURN_IF_ERROR(check_layer_list("the number of heads", config.layer_heads, config.layers));
  KV_RETURN_IF_ERROR(check_layer_list("the number of kv heads", config.layer_kv_heads, config.layers));
  KV_RETURN_IF_ERROR(check_layer_list("ffn_dim", config.layer_ffn_dim, config.layers));
  KV_RETURN_IF_ERROR(check_layer_list("the window", config.layer_window, config.layers));
  for (uint32_t layer = 0; layer < config.layers; ++layer) KV_RETURN_IF_ERROR(check_layer(config, layer));
  return {};
}

}  // namespace kvasir
