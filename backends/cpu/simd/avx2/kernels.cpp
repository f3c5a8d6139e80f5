// SPDX-License-Identifier: MIT
//
// The kernels for AVX2 + FMA + F16C.
#include "simd/prelude.h"
#include "simd/tables.h"

#define KV_ISA avx2

KV_TARGET_BEGIN("avx2,fma,f16c")

#include "simd/avx2/vec.h"
// Everything below is written over the vectors above.
#include "simd/avx2/dots.h"

namespace kvasir::cpu::KV_ISA {

// Row groups of a tile: for several tokens, and for one.
constexpr uint32_t kInt8TileRows = 1, kInt8VectorRows = 1, kFloatTileRows = 1, kFloatVectorRows = 4;

}  // namespace kvasir::cpu::KV_ISA

#include "simd/generic/table.h"

KV_TARGET_END

namespace kvasir::cpu::avx2 {

const Kernels kKernels = {"avx2", prepare, linear, rms_norm, rope, glu, activate, add, scale};

}  // namespace kvasir::cpu::avx2
