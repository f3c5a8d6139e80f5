// SPDX-License-Identifier: MIT
//
// Rounding to the types of a cache.
#include "reference/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kvasir/types.h"

namespace kvasir::conformance {
namespace {

struct TypeFacts {
  const char* label;
  uint32_t elements, bytes;
};
constexpr TypeFacts kFacts[] = {
    {"DEFAULT", 0, 0},  {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},
    {"Q8_0", 32, 34},   {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144},
    {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136},
};

// A binary format of `fraction` fraction bits and exponents from `lowest` on, rounded to nearest even.
double round_to(double x, int fraction, int lowest) {
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| < 2^exponent
  const int unit = std::max(exponent - 1, lowest) - fraction;
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

}  // namespace

uint16_t f16_bits(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return sign | 0x7e00 | (std::bit_cast<uint32_t>(static_cast<float>(x)) >> 13 & 0x3ff);
  if (std::isinf(x)) return sign | 0x7c00;
  const double rounded = std::fabs(round_to(x, 10, -14));
  if (rounded >= 65536) return sign | 0x7c00;
  if (rounded < std::ldexp(1, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(rounded, 24)));
  int exponent = 0;
  const double fraction = std::frexp(rounded, &exponent);  // in [0.5, 1)
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 | static_cast<int>(std::ldexp(fraction, 11) - 1024));
}

double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  return (bits & 0x8000) != 0 ? -value : value;
}

namespace {

uint16_t bf16_bits(float x) {
  if (std::isnan(x)) return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16 | 0x40);
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t low = bits & 0xffff, high = bits >> 16;
  return static_cast<uint16_t>(high + (low > 0x8000 || (low == 0x8000 && (high & 1) != 0) ? 1 : 0));
}

// The scale of a block and its codes before their offset: `steps` is 127 (q8_0, of |x|) or -8 (q4_0, of x).
struct Codes {
  uint16_t scale = 0;
  int code[32] = {};
};

Codes codes_of(const float (&x)[32], float steps, int lowest, int highest) {
  Codes result;
  float extreme = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) {
      result.scale = 0x7e00;
      return result;
    }
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  if (steps > 0) extreme = std::fabs(extreme);
  const float exact = extreme / steps;
  result.scale = f16_bits(exact);
  if ((result.scale & 0x7fff) == 0) {
    result.scale = 0;
    return result;
  }
  float factor = steps / extreme;
  if ((result.scale & 0x7fff) == 0x7c00) {
    result.scale = static_cast<uint16_t>(result.scale - 1);  // 65504
    factor = 1.0f / static_cast<float>(f16_value(result.scale));
  }
  for (int i = 0; i < 32; ++i) {
    const float code = std::nearbyint(x[i] * factor);
    result.code[i] = static_cast<int>(std::clamp(code, static_cast<float>(lowest), static_cast<float>(highest)));
  }
  return result;
}

void q8_0_block(const float (&x)[32], unsigned char* block) {
  const Codes codes = codes_of(x, 127, -127, 127);
  std::memcpy(block, &codes.scale, 2);
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<unsigned char>(codes.code[i]);
}

void q4_0_block(const float (&x)[32], unsigned char* block) {
  const Codes codes = codes_of(x, -8, -8, 7);
  std::memcpy(block, &codes.scale, 2);
  for (int i = 0; i < 16; ++i) {
    block[2 + i] = static_cast<unsigned char>((codes.code[i] + 8) | (codes.code[i + 16] + 8) << 4);
  }
}

float block_element(uint32_t type, const unsigned char* block, uint32_t i) {
  uint16_t scale = 0;
  std::memcpy(&scale, block, 2);
  const auto d = static_cast<float>(f16_value(scale));
  if (type == KV_TYPE_Q8_0) return d * static_cast<float>(static_cast<signed char>(block[2 + i]));
  const int nibble = i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4;
  return d * static_cast<float>(nibble - 8);
}

}  // namespace

bool is_cache_type(uint32_t type) { return type >= KV_TYPE_F32 && type <= KV_TYPE_Q4_0; }
const char* type_label(uint32_t type) { return type < std::size(kFacts) ? kFacts[type].label : "unknown"; }
uint32_t block_elements(uint32_t type) { return kFacts[type].elements; }
uint32_t block_bytes(uint32_t type) { return kFacts[type].bytes; }

std::vector<unsigned char> quantize_head(uint32_t type, const float* x, uint32_t width) {
  const uint32_t elements = block_elements(type), bytes = block_bytes(type);
  std::vector<unsigned char> result(size_t{(width + elements - 1) / elements} * bytes);
  unsigned char* block = result.data();
  for (uint32_t first = 0; first < width; first += elements, block += bytes) {
    if (type == KV_TYPE_F32) {
      std::memcpy(block, &x[first], 4);
    } else if (elements == 1) {
      const uint16_t bits = type == KV_TYPE_F16 ? f16_bits(x[first]) : bf16_bits(x[first]);
      std::memcpy(block, &bits, 2);
    } else {
      float padded[32] = {};
      std::copy_n(x + first, std::min(32u, width - first), padded);
      type == KV_TYPE_Q8_0 ? q8_0_block(padded, block) : q4_0_block(padded, block);
    }
  }
  return result;
}

std::vector<float> dequantize_head(uint32_t type, const unsigned char* blocks, uint32_t width) {
  std::vector<float> result(width);
  for (uint32_t i = 0; i < width; ++i) {
    const unsigned char* block = blocks + size_t{i / block_elements(type)} * block_bytes(type);
    uint16_t bits = 0;
    std::memcpy(&bits, block, 2);
    if (type == KV_TYPE_F32) {
      std::memcpy(&result[i], block, 4);
    } else if (type == KV_TYPE_F16) {
      result[i] = static_cast<float>(f16_value(bits));
    } else if (type == KV_TYPE_BF16) {
      result[i] = std::bit_cast<float>(uint32_t{bits} << 16);
    } else {
      result[i] = block_element(type, block, i % 32);
    }
  }
  return result;
}

}  // namespace kvasir::conformance
