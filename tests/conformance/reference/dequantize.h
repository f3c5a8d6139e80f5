// SPDX-License-Identifier: MIT
//
// Weights of the fifteen element types of kvasir/types.h as doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir::conformance {

// `elements` is a whole number of blocks.
std::vector<double> dequantize(uint32_t type, const std::vector<unsigned char>& bytes, size_t elements);

}  // namespace kvasir::conformance
