// SPDX-License-Identifier: MIT
//
// Weights from the block layouts of types.h into the packed form of layout.h, and rows back out as f32. Lossless: codes
// and scales are moved, never recomputed. Any number of threads may pack disjoint ranges of groups of one matrix.
#pragma once

#include "pack/layout.h"

namespace kvasir::cpu {

// Packs row groups [g0, g1) of a matrix [rows, width]. source: the whole matrix in the layout of types.h, any alignment.
// packed: the whole destination, packed_bytes(), aligned to kPackAlign; only the given groups are written.
// width is a multiple of weight_unit(type).block.
void pack_groups(WeightType type, const void* source, uint32_t rows, uint32_t width, uint32_t g0, uint32_t g1,
                 void* packed);

// Row `row` of a packed matrix as f32: out [width]. Exactly the dequantised values of types.h.
void unpack_row(WeightType type, const void* packed, uint32_t width, uint32_t row, float* out);

}  // namespace kvasir::cpu
