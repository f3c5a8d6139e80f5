// SPDX-License-Identifier: MIT
//
// Exact integer dot products on AVX-512 VNNI; scalar/dots.h says what they mean. vpdpbusd takes unsigned codes, so the
// offset is repaid by the starting value.
#pragma once

#include "simd/generic/int8_block.h"

namespace kvasir::cpu::KV_ISA {

KV_INLINE __m512i load_line(const uint8_t* p) { return _mm512_loadu_si512(p); }
KV_INLINE I32x16 dot_line(I32x16 acc, __m512i w, const Int8Block& x, int j) {
  return {_mm512_dpbusd_epi32(acc.v, w, _mm512_set1_epi32(line_word(x, j)))};
}
KV_INLINE __m512i nibbles(const uint8_t* block, int j) {
  const __m512i both = load_line(block + 64 * (j & 3));
  return _mm512_and_si512(j < 4 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
}

struct DotQ8 {
  static constexpr int kSteps = 8;
  struct Lines {
    __m512i code;
  };
  using Acc = I32x16;
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block& x) {
    return broadcast_i32(x.minus_128_sums);
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) { return {load_line(block + 64 * s)}; }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    return dot_line(acc, w.code, x, s);
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

template <bool kOffset>
struct DotQ4 {
  static constexpr int kSteps = 8;
  struct Lines {
    __m512i code;
  };
  using Acc = I32x16;
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block& x) {
    return broadcast_i32(kOffset ? x.minus_8_sums : 0);
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) { return {nibbles(block, s)}; }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    return dot_line(acc, w.code, x, s);
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

struct DotQ6 {
  static constexpr int kSteps = 4;
  struct Lines {
    __m512i code[2];
  };
  struct Acc {
    I32x16 half[2];
  };
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block& x) {
    return {{broadcast_i32(2 * x.minus_16_halves[0]), broadcast_i32(2 * x.minus_16_halves[1])}};
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) {
    Lines out;
    for (int l = 0; l < 2; ++l) {
      const int j = 2 * s + l, shift = 4 - 2 * (j & 3);
      const I32x16 packed = {load_line(block + 64 * (4 + j / 4))};
      const I32x16 moved = shift >= 0 ? shift_left(packed, shift) : shift_right(packed, -shift);
      out.code[l] = _mm512_or_si512(nibbles(block, j), (moved & broadcast_i32(0x30303030)).v);
    }
    return out;
  }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    acc.half[s / 2] = dot_line(dot_line(acc.half[s / 2], w.code[0], x, 2 * s), w.code[1], x, 2 * s + 1);
    return acc;
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side& side, const Int8Block&) {
    const I32x16 low = shift_right_signed(shift_left(side.codes, 16), 16), high = shift_right_signed(side.codes, 16);
    return {_mm512_add_epi32(_mm512_mullo_epi32(acc.half[0].v, low.v), _mm512_mullo_epi32(acc.half[1].v, high.v))};
  }
};

}  // namespace kvasir::cpu::KV_ISA
