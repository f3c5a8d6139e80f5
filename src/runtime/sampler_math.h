// SPDX-License-Identifier: MIT
//
// Exponential, logarithm and random numbers of the sampler. Written here, of exact IEEE operations only (compiled
// without contraction), because the C library's last bit differs between platforms and one bit can change a token.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kvasir {

// 1/0!, 1/1!, ... 1/14!
inline constexpr std::array<double, 15> kInverseFactorials = [] {
  std::array<double, 15> table{};
  double factorial = 1.0;
  for (int n = 0; n < 15; ++n) {
    if (n > 0) factorial *= n;
    table[static_cast<size_t>(n)] = 1.0 / factorial;
  }
  return table;
}();

// e^x for x <= 0, within 2 units in the last place; 0 where the result is below the smallest double.
inline double portable_exp(double x) {
  constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;  // low bits zero, so k * kLn2High is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  if (!(x > -746.0)) return 0.0;
  const double k = std::floor(x * kInverseLn2 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  double sum = kInverseFactorials[14];
  for (size_t n = 14; n-- > 0;) sum = sum * r + kInverseFactorials[n];  // Taylor, Horner's form
  return std::ldexp(sum, static_cast<int>(k));
}

// ln x for finite x > 0, within 4 units in the last place.
inline double portable_log(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kHalfRoot = 0x1.6a09e667f3bcdp-1;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < kHalfRoot) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);  // |s| < 0.172; ln m = 2 (s + s^3/3 + s^5/5 + ...)
  const double square = s * s;
  double sum = 0.0;
  for (int n = 25; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * kLn2 + 2.0 * s * sum;
}

// Number `index` of the stream of `seed`, uniform in [0, 1): the top 53 bits of SplitMix64 whose state starts at the
// mixed seed. Any number of a stream can be computed directly, so (seed, index) is the whole state.
inline double random_uniform(uint64_t seed, uint64_t index) {
  const auto mix = [](uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  };
  const uint64_t bits = mix(mix(seed) + (index + 1) * 0x9E3779B97F4A7C15u);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace kvasir
