// SPDX-License-Identifier: MIT
//
// Qwen3 (Yang et al. 2025): Llama's program with an RMS norm on each query and key head before the rotation, which
// rotate_and_store emits where the configuration says qk_norm; head_dim need not be dim / heads.
#include "arch/arch.h"

namespace kvasir::arch {

void build_qwen3(Builder& b) { build_llama(b); }

}  // namespace kvasir::arch
