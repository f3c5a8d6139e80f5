// SPDX-License-Identifier: MIT
//
// The names and shapes of the tensors of the supported families, from a configuration.
#include "model/tensors.h"

#include <cinttypes>
#include <utility>

#include "model/printable.h"

namespace kvasir {
namespace {

class SpecList {
 public:
  // y = W x (+ b): "name.weight" [in, out] and, optionally, "name.bias" [out].
  void linear(const std::string& name, uint64_t in, uint64_t out) {
    specs_.push_back({name + ".weight", {in, out}, false});
    specs_.push_back({name + ".bias", {out, 0}, true});
  }

  void norm(NormKind kind, const std::string& name, uint64_t width) {
    if (kind == NormKind::none) return;
    specs_.push_back({name + ".weight", {width, 0}, false});
    if (kind == NormKind::layer) specs_.push_back({name + ".bias", {width, 0}, true});
  }

  void vector(const std::string& name, uint64_t width) { specs_.push_back({name, {width, 0}, false}); }
  void matrix(const std::string& name, uint64_t in, uint64_t out) { specs_.push_back({name, {in, out}, false}); }

  std::vector<TensorSpec> take() { return std::move(specs_); }

 private:
  std::vector<TensorSpec> specs_;
};

void add_attention(const ModelConfig& config, uint32_t layer, const std::string& block, SpecList* list) {
  const uint64_t heads = config.heads_at(layer);
  const uint64_t kv_heads = config.kv_heads_at(layer);
  list->norm(config.norm, block + "attn_norm", config.dim);
  list->linear(block + "attn_q", config.dim, heads * config.head_dim);
  list->linear(block + "attn_k", config.dim, kv_heads * config.head_dim);
  list->linear(block + "attn_v", config.dim, kv_heads * config.v_head_dim);
  if (config.qk_norm) {
    list->norm(NormKind::rms, block + "attn_q_norm", config.head_dim);
    list->norm(NormKind::rms, block + "attn_k_norm", config.head_dim);
  }
  if (config.attention_output) list->linear(block + "attn_output", heads * config.v_head_dim, config.dim);
  if (config.post_norm) list->norm(config.norm, block + "post_attention_norm", config.dim);
}

void add_ffn(const ModelConfig& config, uint32_t layer, const std::string& block, SpecList* list) {
  if (config.ffn == FfnKind::none) return;
  const uint64_t ffn_dim = config.ffn_dim_at(layer);
  list->norm(config.norm, block + "ffn_norm", config.dim);
  if (config.ffn == FfnKind::gated) list->linear(block + "ffn_gate", config.dim, ffn_dim);
  list->linear(block + "ffn_up", config.dim, ffn_dim);
  list->linear(block + "ffn_down", ffn_dim, config.dim);
  if (config.post_norm) list->norm(config.norm, block + "post_ffw_norm", config.dim);
}

std::string dims_text(const TensorSpec& spec) {
  std::string text = "[";
  text += std::to_string(spec.dims[0]);
  if (spec.dims[1] > 0) text += ", " + std::to_string(spec.dims[1]);
  return text + "]";
}

// [n, 1] is as good as [n].
bool has_shape(const TensorInfo& info, const TensorSpec& spec) {
  return info.dims[0] == spec.dims[0] && info.dims[1] == (spec.dims[1] > 0 ? spec.dims[1] : 1) && info.dims[2] == 1 &&
         info.dims[3] == 1;
}

Status check_specs(const std::vector<TensorSpec>& specs, const WeightSource& weights) {
  for (const TensorSpec& spec : specs) {
    const auto index = weights.find(spec.name);
    if (!index) {
      KV_CHECK(spec.optional, KV_NOT_FOUND, "tensor '%s' %s is missing", printable(spec.name).c_str(),
               dims_text(spec).c_str());
      continue;
    }
    const TensorInfo& info = weights.info(*index);
    KV_CHECK(has_shape(info, spec), KV_INVALID_ARGUMENT, "tensor '%s' is %s, expected %s", printable(spec.name).c_str(),
             kvasir::dims_text(info).c_str(), dims_text(spec).c_str());
  }
  return {};
}

}  // namespace

std::vector<TensorSpec> shared_tensors(const ModelConfig& config) {
  SpecList list;
  if (config.embedding) list.matrix("token_embd.weight", config.dim, config.vocab);
  for (const RopeConfig* rope : {&config.rope, &config.rope_local}) {
    if (rope->pairing != RopePairing::none && !rope->factors_tensor.empty()) {
      list.vector(rope->factors_tensor, rope->dims / 2);
    }
  }
  list.norm(config.norm, "output_norm", config.dim);
  if (config.output && !config.tied_output) list.linear("output", config.dim, config.vocab);
  return list.take();
}

std::vector<TensorSpec> layer_tensors(const ModelConfig& config, uint32_t layer) {
  SpecList list;
  std::string block = "blk.";
  block += std::to_string(layer);
  block += ".";
  add_attention(config, layer, block, &list);
  add_ffn(config, layer, block, &list);
  return list.take();
}

Status check_tensors(const ModelConfig& config, const WeightSource& weights) {
  KV_RETURN_IF_ERROR(check_specs(shared_tensors(config), weights));
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    KV_RETURN_IF_ERROR(check_specs(layer_tensors(config, layer), weights));
  }
  return {};
}

}  // namespace kvasir
