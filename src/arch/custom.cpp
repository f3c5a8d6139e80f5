// SPDX-License-Identifier: MIT
//
// A model from the caller's own tensors (kv_model_builder). Any part but attention may be missing: embedding table, norms,
// residuals, output projection, rotary positions, feed-forward part, output head.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace kvasir::arch {

void build_custom(Builder& b) {
  const ModelConfig& c = b.config();
  Value x = b.embed(c.embedding ? "token_embd.weight" : "");
  for (uint32_t layer = 0; layer < c.layers; layer++) {
    b.begin_layer(layer);
    const Qkv qkv = normed_qkv(b, x, layer);
    rotate_and_store(b, qkv, layer);
    x = attend(b, qkv.q, x, layer);
    if (c.ffn == FfnKind::gated) x = gated_ffn(b, x, layer);
  }
  head(b, x);
}

}  // namespace kvasir::arch
