// SPDX-License-Identifier: MIT
//
// f16 and bf16 to and from f32, by integer arithmetic: the same bits on every machine. To the narrow type rounds to
// nearest even; what is too large becomes infinity; NaN stays NaN (made quiet).
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir::sdk {

constexpr float f32_from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

constexpr uint16_t bf16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f32_from_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t{bits} & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return std::bit_cast<float>(sign);
  uint32_t shift = 0;  // a subnormal: its leading one becomes the implicit bit
  while ((fraction & 0x400u) == 0) {
    fraction <<= 1;
    ++shift;
  }
  return std::bit_cast<float>(sign | (113 - shift) << 23 | (fraction & 0x3ffu) << 13);
}

constexpr uint16_t f16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (magnitude >= 0x38800000u) {                                              // normal: 2^-14 and more
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
  }
  if (magnitude <= 0x33000000u) return static_cast<uint16_t>(sign);  // 2^-25 and less round to zero
  const uint32_t shift = 126 - (magnitude >> 23);                    // subnormal: units of 2^-24
  const uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  uint32_t units = fraction >> shift;
  if (rest > half || (rest == half && (units & 1u) != 0)) ++units;
  return static_cast<uint16_t>(sign | units);
}

}  // namespace kvasir::sdk
