// SPDX-License-Identifier: MIT
//
// Activations as int8: a row becomes blocks of 32 elements with one scale each, in one cache line together with the sums
// that repay the offsets of unsigned weight codes. One format for every block-quantised weight type.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

struct alignas(64) Int8Block {
  int8_t q[32];            // round(x / scale), in [-127, 127]
  float scale;             // largest |x| / 127; 0 for a block of zeros, NaN where an element is not finite (then q = 0)
  float scaled_sum;        // scale * sum(q): for weights with a minimum
  int32_t minus_128_sums;  // -128 sum(q): for codes stored with an offset of 128 ...
  int32_t minus_8_sums;    // ... and of 8
  int16_t minus_16_halves[2];  // -16 times the sum of each half: for Q6_K, whose offset is 2 * 16
  uint32_t unused[3];
};
static_assert(sizeof(Int8Block) == 64);

// The four bytes of line j, 0 <= j < 8, as one word.
KV_INLINE int32_t line_word(const Int8Block& x, int j) {
  int32_t word;
  std::memcpy(&word, x.q + 4 * j, 4);
  return word;
}

// One block from 32 elements, given as two vectors.
KV_INLINE void make_int8_block(F32x16 a, F32x16 b, Int8Block* out) {
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr float kSmallest = 127 * 0x1p-126f;  // below it the scale would be denormal: all zeros
  // The bits of non-negative floats are ordered as the floats are, and NaN comes last.
  const int32_t max_bits = max_lanes(max(as_int(abs(a)), as_int(abs(b))));
  const float largest = std::bit_cast<float>(max_bits);
  const bool finite = max_bits < kInfinity, zeros = !finite || largest < kSmallest;

  const F32x16 inverse = broadcast(zeros ? 0.0f : 127.0f / largest), magic = broadcast(12582912.0f);  // 1.5 * 2^23
  const I32x16 keep = broadcast_i32(zeros ? 0 : -1), magic_bits = as_int(magic);
  const I32x16 qa = (as_int(fma(a, inverse, magic)) - magic_bits) & keep;  // to nearest even
  const I32x16 qb = (as_int(fma(b, inverse, magic)) - magic_bits) & keep;
  store_low8(out->q, qa);
  store_low8(out->q + 16, qb);

  const int32_t sum_a = sum_lanes(qa), sum_b = sum_lanes(qb), sum = sum_a + sum_b;
  const float scale = !finite ? __builtin_nanf("") : zeros ? 0.0f : largest / 127.0f;
  out->scale = scale;
  out->scaled_sum = scale * float(sum);
  out->minus_128_sums = -128 * sum;
  out->minus_8_sums = -8 * sum;
  out->minus_16_halves[0] = int16_t(-16 * sum_a);
  out->minus_16_halves[1] = int16_t(-16 * sum_b);
  out->unused[0] = out->unused[1] = out->unused[2] = 0;
}

// A row of `width` elements; the last block is filled up with zeros, and the row with a block to an even number of them.
KV_INLINE void make_int8_row(const float* x, uint32_t width, Int8Block* out) {
  uint32_t k = 0;
  for (; k + 32 <= width; k += 32) make_int8_block(load(x + k), load(x + k + 16), out++);
  if (width % 64 == 0) return;
  if (k < width) {
    const uint32_t left = width - k;
    const F32x16 a = load_first(x + k, left), b = left > 16 ? load_first(x + k + 16, left - 16) : zero();
    make_int8_block(a, b, out++);
    k += 32;
  }
  if (k % 64 != 0) make_int8_block(zero(), zero(), out);
}

}  // namespace kvasir::cpu::KV_ISA
