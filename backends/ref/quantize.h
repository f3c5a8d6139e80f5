// SPDX-License-Identifier: MIT
//
// From f32 to the types a cache can store: f32, f16, bf16, q8_0, q4_0. Normative: every backend that stores a row must
// store these bytes, so that snapshots move between backends and promise 3 holds across them. The formulas are in
// quantize.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::ref {

// `width` elements into whole blocks of `type`; the rest of the last block holds zeros.
void quantize(uint32_t type, const float* x, uint32_t width, std::byte* blocks);

}  // namespace kvasir::ref
