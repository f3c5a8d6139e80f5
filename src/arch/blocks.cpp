// SPDX-License-Identifier: MIT
#include "arch/blocks.h"

namespace kvasir::arch {

namespace {

bool has_norm(const Builder& b) { return b.config().norm != NormKind::none; }

// The residual connection, or, in models without one, just y.
Value residual(Builder& b, Value x, Value y, const char* name) {
  if (!b.config().residual) return y;
  b.add(x, y, name);
  return x;
}

}  // namespace

std::string in_layer(uint32_t layer, const char* name) { return "blk." + std::to_string(layer) + "." + name; }

CacheShape cache_shape(const ModelConfig& c, uint32_t layer) {
  return {c.kv_heads_at(layer), c.head_dim, c.v_head_dim, c.window_at(layer)};
}

Qkv normed_qkv(Builder& b, Value x, uint32_t layer) {
  const ModelConfig& c = b.config();
  const Builder::Group group(b, KVB_GROUP_NORM_QKV);
  const Value h = has_norm(b) ? b.rms_norm(x, in_layer(layer, "attn_norm.weight"), "attn_norm") : x;
  const Value q = b.linear(h, in_layer(layer, "attn_q"), c.heads_at(layer) * c.head_dim, "q");
  const Value k = b.linear(h, in_layer(layer, "attn_k"), c.kv_heads_at(layer) * c.head_dim, "k");
  const Value v = b.linear(h, in_layer(layer, "attn_v"), c.kv_heads_at(layer) * c.v_head_dim, "v");
  return {q, k, v};
}

void rotate_and_store(Builder& b, const Qkv& qkv, uint32_t layer) {
  const ModelConfig& c = b.config();
  const Builder::Group group(b, KVB_GROUP_ROPE_STORE);
  if (c.qk_norm) {
    b.rms_norm_heads(qkv.q, in_layer(layer, "attn_q_norm.weight"), c.head_dim, "q_norm");
    b.rms_norm_heads(qkv.k, in_layer(layer, "attn_k_norm.weight"), c.head_dim, "k_norm");
  }
  b.rope(qkv.q, c.heads_at(layer), c.rope, "q_rope");
  b.rope(qkv.k, c.kv_heads_at(layer), c.rope, "k_rope");
  b.kv_store(qkv.k, qkv.v, cache_shape(c, layer));
}

Value attend(Builder& b, Value q, Value x, uint32_t layer) {
  const ModelConfig& c = b.config();
  const Builder::Group group(b, KVB_GROUP_ATTENTION);
  Value a = b.attention(q, cache_shape(c, layer));
  if (c.attention_output) a = b.linear(a, in_layer(layer, "attn_output"), c.dim, "attn_out");
  return residual(b, x, a, "attn_residual");
}

Value gated_ffn(Builder& b, Value x, uint32_t layer) {
  const ModelConfig& c = b.config();
  Value h = x;
  {
    const Builder::Group group(b, KVB_GROUP_NORM_FFN);
    if (has_norm(b)) h = b.rms_norm(x, in_layer(layer, "ffn_norm.weight"), "ffn_norm");
    const Value gate = b.linear(h, in_layer(layer, "ffn_gate"), c.ffn_dim_at(layer), "gate");
    const Value up = b.linear(h, in_layer(layer, "ffn_up"), c.ffn_dim_at(layer), "up");
    h = b.glu(gate, up);
  }
  const Builder::Group group(b, KVB_GROUP_DOWN);
  const Value y = b.linear(h, in_layer(layer, "ffn_down"), c.dim, "down");
  return residual(b, x, y, "ffn_residual");
}

void head(Builder& b, Value x) {
  const ModelConfig& c = b.config();
  b.end_layers();
  const Builder::Group group(b, KVB_GROUP_LOGITS);
  Value y = b.select_rows(x);
  if (has_norm(b)) y = b.rms_norm(y, "output_norm.weight", "output_norm");
  if (c.output) y = b.linear(y, c.tied_output ? "token_embd" : "output", c.vocab, "logits");
  b.output(y);
}

}  // namespace kvasir::arch
