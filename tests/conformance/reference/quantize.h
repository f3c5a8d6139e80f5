// SPDX-License-Identifier: MIT
//
// What a cache stores of an f32 row: the bytes of f32, f16, bf16, q8_0 and q4_0, and back. Written from the formulas
// of backends/ref/quantize.cpp with arithmetic instead of bits, so that the two check each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir::conformance {

// Types that a cache may have: these five.
bool is_cache_type(uint32_t type);
// "Q8_0", for names of cases; any type of types.h.
const char* type_label(uint32_t type);
// Elements and bytes of a block of any type of types.h.
uint32_t block_elements(uint32_t type);
uint32_t block_bytes(uint32_t type);

// IEEE binary16, rounded to nearest even.
uint16_t f16_bits(double x);
double f16_value(uint16_t bits);

// One head of a row in whole blocks, the last one filled up with zeros. `type` is one of the five.
std::vector<unsigned char> quantize_head(uint32_t type, const float* x, uint32_t width);
std::vector<float> dequantize_head(uint32_t type, const unsigned char* blocks, uint32_t width);

}  // namespace kvasir::conformance
