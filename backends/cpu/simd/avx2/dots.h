// SPDX-License-Identifier: MIT
//
// Exact integer dot products on AVX2; scalar/dots.h says what they mean.
//
// vpmaddubsw adds two products u8 * s8 into an int16 and saturates there, so the codes as stored would overflow:
//   Q8  w = code ^ 0x80 is signed, |w| <= 128: vpmaddubsw(|w|, sign(x, w)) is at most 2 * 128 * 127 = 32512.
//   Q4  at most 2 * 15 * 127 = 3810 a line: the eight lines of a block stay in int16 (30480) and are widened once.
//   Q6  at most 2 * 63 * 127 = 16002: two lines fit (32004), then vpmaddwd multiplies by the scale of the half as it
//       widens.
#pragma once

#include "simd/generic/int8_block.h"

namespace kvasir::cpu::KV_ISA {

KV_INLINE __m256i line_half(const uint8_t* p, int half) { return load_half(p + 32 * half); }

// Keeps a sum in its register: left alone, g++ computes all products of a block first and spills them.
KV_INLINE __m256i pin(__m256i a) {
  asm("" : "+x"(a));
  return a;
}
KV_INLINE I32x16 pin(I32x16 a) { return {pin(a.lo), pin(a.hi)}; }

struct DotQ8 {
  static constexpr int kSteps = 8;
  struct Lines {
    __m256i code[2], magnitude[2];
  };
  using Acc = I32x16;
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block&) {
    return broadcast_i32(0);
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) {
    Lines out;
    for (int h = 0; h < 2; ++h) {
      out.code[h] = _mm256_xor_si256(line_half(block + 64 * s, h), _mm256_set1_epi8(-128));
      out.magnitude[h] = _mm256_abs_epi8(out.code[h]);
    }
    return out;
  }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    const __m256i word = _mm256_set1_epi32(line_word(x, s)), ones = _mm256_set1_epi16(1);
    const __m256i lo = _mm256_maddubs_epi16(w.magnitude[0], _mm256_sign_epi8(word, w.code[0]));
    const __m256i hi = _mm256_maddubs_epi16(w.magnitude[1], _mm256_sign_epi8(word, w.code[1]));
    return pin(acc + I32x16{_mm256_madd_epi16(lo, ones), _mm256_madd_epi16(hi, ones)});
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

// Low (j < 4) or high nibbles of line j of a block, half h.
KV_INLINE __m256i nibbles(const uint8_t* block, int j, int h) {
  const __m256i both = line_half(block + 64 * (j & 3), h);
  return _mm256_and_si256(j < 4 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
}

template <bool kOffset>
struct DotQ4 {
  static constexpr int kSteps = 8;
  struct Lines {
    __m256i code[2];
  };
  struct Acc {
    __m256i half[2];
  };  // int16
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block&) {
    return {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) { return {{nibbles(block, s, 0), nibbles(block, s, 1)}}; }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    const __m256i word = _mm256_set1_epi32(line_word(x, s));
    return {{pin(_mm256_add_epi16(acc.half[0], _mm256_maddubs_epi16(w.code[0], word))),
             pin(_mm256_add_epi16(acc.half[1], _mm256_maddubs_epi16(w.code[1], word)))}};
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block& x) {
    const __m256i ones = _mm256_set1_epi16(1);
    const I32x16 dot = {_mm256_madd_epi16(acc.half[0], ones), _mm256_madd_epi16(acc.half[1], ones)};
    return kOffset ? dot + broadcast_i32(x.minus_8_sums) : dot;
  }
};

struct DotQ6 {
  static constexpr int kSteps = 4;
  struct Lines {
    __m256i code[2][2];
  };  // [line][half]
  using Acc = I32x16;
  // The offset: -32 (s0 sum0 + s1 sum1), with 2 s beside -16 sum, both of which fit an int16.
  template <class Side>
  static KV_INLINE Acc start(const Side& side, const Int8Block& x) {
    int32_t halves;
    std::memcpy(&halves, x.minus_16_halves, 4);
    const __m256i sums = _mm256_set1_epi32(halves);
    return {_mm256_madd_epi16(_mm256_add_epi16(side.codes.lo, side.codes.lo), sums),
            _mm256_madd_epi16(_mm256_add_epi16(side.codes.hi, side.codes.hi), sums)};
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) {
    Lines out;
    for (int l = 0; l < 2; ++l)
      for (int h = 0; h < 2; ++h) {
        const int j = 2 * s + l, shift = 4 - 2 * (j & 3);
        const __m256i packed = line_half(block + 64 * (4 + j / 4), h);
        const __m256i moved = shift >= 0 ? _mm256_slli_epi16(packed, shift) : _mm256_srli_epi16(packed, -shift);
        out.code[l][h] = _mm256_or_si256(nibbles(block, j, h), _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
      }
    return out;
  }
  // Both int16 of a lane become the scale of half s / 2 of the block.
  static KV_INLINE __m256i spread(__m256i codes, int s) {
    const __m256i low = _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 0, 1, 0, 1, 4, 5, 4, 5, 8,
                                         9, 8, 9, 12, 13, 12, 13);
    const __m256i pick = s < 2 ? low : _mm256_add_epi8(low, _mm256_set1_epi8(2));
    return _mm256_shuffle_epi8(codes, pick);
  }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side& side, const Int8Block& x, int s) {
    const __m256i a = _mm256_set1_epi32(line_word(x, 2 * s)), b = _mm256_set1_epi32(line_word(x, 2 * s + 1));
    const __m256i lo = _mm256_add_epi16(_mm256_maddubs_epi16(w.code[0][0], a), _mm256_maddubs_epi16(w.code[1][0], b));
    const __m256i hi = _mm256_add_epi16(_mm256_maddubs_epi16(w.code[0][1], a), _mm256_maddubs_epi16(w.code[1][1], b));
    return pin(
        acc + I32x16{_mm256_madd_epi16(lo, spread(side.codes.lo, s)), _mm256_madd_epi16(hi, spread(side.codes.hi, s))});
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

}  // namespace kvasir::cpu::KV_ISA
