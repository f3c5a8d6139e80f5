// SPDX-License-Identifier: MIT
//
// From the block types of kvasir/types.h to f32. Normative: the bit positions inside blocks are written out in
// dequantize.cpp and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::ref {

// `width` elements of `type` (known), from as many whole blocks as hold them; a last block may be needed in part.
void dequantize(uint32_t type, const std::byte* blocks, uint32_t width, float* out);

}  // namespace kvasir::ref
