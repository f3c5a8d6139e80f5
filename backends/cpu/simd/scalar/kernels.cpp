// SPDX-License-Identifier: MIT
//
// The kernels in plain C++.
#define KV_ARRAY_LANES
#include "simd/prelude.h"
#include "simd/tables.h"

#define KV_ISA scalar

#include "simd/scalar/vec.h"
// Everything below is written over the vectors above.
#include "simd/scalar/dots.h"

namespace kvasir::cpu::KV_ISA {

// Row groups of a tile: for several tokens, and for one.
constexpr uint32_t kInt8TileRows = 1, kInt8VectorRows = 1, kFloatTileRows = 1, kFloatVectorRows = 1;

}  // namespace kvasir::cpu::KV_ISA

#include "simd/generic/table.h"

namespace kvasir::cpu::scalar {

const Kernels kKernels = {"scalar", prepare, linear, rms_norm, rope, glu, activate, add, scale};

}  // namespace kvasir::cpu::scalar
