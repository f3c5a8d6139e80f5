// SPDX-License-Identifier: MIT
//
// The avx512 kernels, compiled as they are, over emulated intrinsics: the tables of avx512_emulated.
#include "emulated_avx512.h"
// The intrinsics come first.
#include "simd/kernels.h"

namespace kvasir::cpu::avx512_emulated {
extern const Kernels kKernels, kKernelsWithBF16;
}

#define KV_ISA avx512_emulated
#include "simd/avx512/kernels.cpp"
