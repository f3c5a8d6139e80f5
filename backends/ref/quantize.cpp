// SPDX-License-Identifier: MIT
//
// Rounding rows into a cache. All arithmetic is f32, each operation rounded to nearest even by itself:
//
//   q8_0   a = largest |x| of the block
//          d = f16(a / 127);   code = round_to_even(x * (127 / a)), then limited to [-127, 127]
//   q4_0   m = the x of largest |x| (the first one of several), sign included
//          d = f16(m / -8);    code = round_to_even(x * (-8 / m)) + 8, then limited to [0, 15]
//
// and for both, in this order:
//   an x that is NaN or infinite:      d = NaN (0x7e00), codes of zero: the whole block reads back as NaN
//   d rounds to zero (a, m included):  d = +0, codes of zero
//   d rounds to infinity:              d = +-65504, its sign kept; codes from x * (1 / d) instead
//
// The code of zero is 0 in q8_0 and 8 in q4_0; the last block of a row is filled up with x = 0.
#include "quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kvasir/types.h"
#include "sdk/half.h"
#include "sdk/types.h"

namespace kvasir::ref {

namespace {

constexpr uint32_t kBlock = 32;
constexpr uint16_t kHalfNan = 0x7e00;
constexpr uint16_t kHalfInfinity = 0x7c00;
constexpr uint16_t kHalfMax = 0x7bff;  // 65504

// Scale of a block and the factor that turns x into a code; factor 0 makes every code that of zero.
struct Scale {
  uint16_t d;
  float factor;
};

// The x of largest magnitude, the first of several; NaN when any x is not finite.
float extreme(const float (&x)[kBlock]) {
  float largest = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  return largest;
}

// For codes that reach `steps` (127 or -8) at the extreme value.
Scale scale_of(float extreme, float steps) {
  if (std::isnan(extreme)) return {kHalfNan, 0};
  const uint16_t d = sdk::f16_from_f32(extreme / steps);
  const auto magnitude = static_cast<uint16_t>(d & 0x7fff);
  if (magnitude == 0) return {0, 0};
  if (magnitude != kHalfInfinity) return {d, steps / extreme};
  const auto largest = static_cast<uint16_t>((d & 0x8000) | kHalfMax);
  return {largest, 1.0f / sdk::f32_from_f16(largest)};
}

int code(float x, const Scale& scale, int lowest, int highest) {
  if (scale.factor == 0) return 0;
  const float steps = std::nearbyint(x * scale.factor);
  return static_cast<int>(std::clamp(steps, static_cast<float>(lowest), static_cast<float>(highest)));
}

void quantize_q8_0(const float (&x)[kBlock], std::byte* block) {
  const Scale scale = scale_of(std::fabs(extreme(x)), 127);
  std::memcpy(block, &scale.d, 2);
  for (uint32_t i = 0; i < kBlock; ++i) block[2 + i] = static_cast<std::byte>(code(x[i], scale, -127, 127));
}

void quantize_q4_0(const float (&x)[kBlock], std::byte* block) {
  const Scale scale = scale_of(extreme(x), -8);
  std::memcpy(block, &scale.d, 2);
  for (uint32_t i = 0; i < kBlock / 2; ++i) {
    const int low = code(x[i], scale, -8, 7) + 8;
    const int high = code(x[i + kBlock / 2], scale, -8, 7) + 8;
    block[2 + i] = static_cast<std::byte>(low | high << 4);
  }
}

}  // namespace

void quantize(uint32_t type, const float* x, uint32_t width, std::byte* blocks) {
  if (type == KV_TYPE_F32) {
    std::memcpy(blocks, x, size_t{width} * sizeof(float));
    return;
  }
  if (type == KV_TYPE_F16 || type == KV_TYPE_BF16) {
    for (uint32_t i = 0; i < width; ++i) {
      const uint16_t bits = type == KV_TYPE_F16 ? sdk::f16_from_f32(x[i]) : sdk::bf16_from_f32(x[i]);
      std::memcpy(blocks + size_t{i} * 2, &bits, 2);
    }
    return;
  }
  const auto quantize_block = type == KV_TYPE_Q8_0 ? quantize_q8_0 : quantize_q4_0;
  for (uint32_t first = 0; first < width; first += kBlock) {
    float padded[kBlock] = {};
    std::copy_n(x + first, std::min(kBlock, width - first), padded);
    quantize_block(padded, blocks);
    blocks += sdk::kTypes[type].bytes;
  }
}

}  // namespace kvasir::ref
