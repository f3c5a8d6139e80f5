// SPDX-License-Identifier: MIT
//
// Qwen2 and Qwen2.5 (Yang et al. 2024): Llama's program. What differs is data: biases on q, k and v (the builder adds
// them where the file has them) and rotary pairs in halves.
#include "arch/arch.h"

namespace kvasir::arch {

void build_qwen2(Builder& b) { build_llama(b); }

}  // namespace kvasir::arch
