// SPDX-License-Identifier: MIT
//
// IEEE binary16 and bfloat16 to and from f32, in integer arithmetic: the same bits on every machine, whatever the
// floating-point state of the thread.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir {

inline float bf16_to_f32(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  uint32_t fraction = half & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));  // infinity, NaN
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  // Subnormal: fraction * 2^-24. Shift its highest bit into the place of the implicit one.
  const auto shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 21;
  fraction = (fraction << shift) & 1023U;
  return std::bit_cast<float>(sign | ((113 - shift) << 23) | (fraction << 13));
}

// To nearest, ties to even; what is too large becomes infinity.
inline uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto with_sign = [sign](uint32_t half) { return static_cast<uint16_t>(sign | half); };
  if (magnitude > 0x7F800000U) return with_sign(0x7E00U);   // NaN
  if (magnitude >= 0x477FF000U) return with_sign(0x7C00U);  // 65520 and above round to infinity
  if (magnitude < 0x33000000U) return sign;                 // below 2^-25: zero
  const uint32_t exponent = magnitude >> 23;
  const uint32_t fraction = (magnitude & 0x7FFFFFU) | 0x800000U;
  const uint32_t drop = exponent < 113 ? 126 - exponent : 13;  // bits below the result's last one; more if subnormal
  uint32_t half = fraction >> drop;
  const uint32_t rest = fraction & ((1U << drop) - 1);
  const uint32_t tie = 1U << (drop - 1);
  if (rest > tie || (rest == tie && (half & 1U) != 0)) ++half;
  // The implicit bit counts as one step of the exponent, so a carry out of the fraction is right by itself.
  return exponent < 113 ? with_sign(half) : with_sign(half + ((exponent - 113) << 10));
}

}  // namespace kvasir
