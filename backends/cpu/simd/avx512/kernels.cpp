// SPDX-License-Identifier: MIT
//
// The kernels for AVX-512 (F, BW, VL, DQ, VNNI), and two functions for processors that have its BF16 part too.
#include "simd/prelude.h"
#include "simd/tables.h"

#ifndef KV_ISA  // tests/cpu_kernels compiles this file over emulated intrinsics, under another name
#define KV_ISA avx512
#endif

KV_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "simd/avx512/vec.h"
// Everything below is written over the vectors above.
#include "simd/avx512/dots.h"

namespace kvasir::cpu::KV_ISA {

// Row groups of a tile: for several tokens, and for one.
constexpr uint32_t kInt8TileRows = 2, kInt8VectorRows = 2, kFloatTileRows = 2, kFloatVectorRows = 4;

}  // namespace kvasir::cpu::KV_ISA

#include "simd/generic/table.h"

KV_TARGET_END

KV_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16")
#include "simd/avx512/product_bf16.h"
KV_TARGET_END

namespace kvasir::cpu::KV_ISA {

const Kernels kKernels = {"avx512", prepare, linear, rms_norm, rope, glu, activate, add, scale};
const Kernels kKernelsWithBF16 = {"avx512", prepare_with_bf16, linear_with_bf16, rms_norm, rope, glu, activate, add,
                                  scale};

}  // namespace kvasir::cpu::KV_ISA
