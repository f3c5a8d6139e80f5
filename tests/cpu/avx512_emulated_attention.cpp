// SPDX-License-Identifier: MIT
//
// The avx512 attention kernels, compiled as they are, over emulated intrinsics.
#include "emulated_avx512.h"
// The intrinsics come first.
#include "simd/attention.h"

namespace kvasir::cpu::avx512_emulated {
extern const AttentionKernels kAttentionKernels;
}

#define KV_ISA avx512_emulated
#include "simd/avx512/attention.cpp"
