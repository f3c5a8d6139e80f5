// SPDX-License-Identifier: MIT
//
// Llama (Touvron et al. 2023) and what shares its shape: Mistral, TinyLlama, SmolLM. Pre-norm decoder with grouped
// query heads, rotary positions and a gated feed-forward part.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace kvasir::arch {

void build_llama(Builder& b) {
  Value x = b.embed("token_embd.weight");
  for (uint32_t layer = 0; layer < b.config().layers; layer++) {
    b.begin_layer(layer);
    const Qkv qkv = normed_qkv(b, x, layer);
    rotate_and_store(b, qkv, layer);
    x = attend(b, qkv.q, x, layer);
    x = gated_ffn(b, x, layer);
  }
  head(b, x);
}

}  // namespace kvasir::arch
