// SPDX-License-Identifier: MIT
//
// Integer dot products of a block of 32 weight codes (16 rows across the lanes) with an Int8Block, exact. A block is
// eight lines of four codes a lane; Lines are decoded once and used for several tokens.
//   start(side, x) -> Acc; step(acc, lines, side, x, s) for s = 0 .. kSteps - 1; finish(acc, side, x) -> I32x16
// The same structs, with the same results, stand in avx2/dots.h and avx512/dots.h.
#pragma once

#include "simd/generic/int8_block.h"

namespace kvasir::cpu::KV_ISA {

struct ByteLine {
  uint8_t code[64];
};

KV_INLINE ByteLine load_line(const uint8_t* p) {
  ByteLine out;
  std::memcpy(out.code, p, 64);
  return out;
}
KV_INLINE I32x16 dot_line(I32x16 acc, const ByteLine& w, const Int8Block& x, int j) {
  for (int i = 0; i < 16; ++i)
    for (int b = 0; b < 4; ++b) acc.lane[i] += w.code[4 * i + b] * x.q[4 * j + b];
  return acc;
}
KV_INLINE ByteLine nibbles(const uint8_t* block, int j) {
  ByteLine out = load_line(block + 64 * (j & 3));
  for (uint8_t& code : out.code) code = j < 4 ? code & 15 : code >> 4;
  return out;
}

// Codes 0 .. 255, meaning code - 128.
struct DotQ8 {
  static constexpr int kSteps = 8;
  using Lines = ByteLine;
  using Acc = I32x16;
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block& x) {
    return broadcast_i32(x.minus_128_sums);
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) { return load_line(block + 64 * s); }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    return dot_line(acc, w, x, s);
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

// Codes 0 .. 15, meaning code - 8 (kOffset) or code.
template <bool kOffset>
struct DotQ4 {
  static constexpr int kSteps = 8;
  using Lines = ByteLine;
  using Acc = I32x16;
  template <class Side>
  static KV_INLINE Acc start(const Side&, const Int8Block& x) {
    return broadcast_i32(kOffset ? x.minus_8_sums : 0);
  }
  static KV_INLINE Lines lines(const uint8_t* block, int s) { return nibbles(block, s); }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    return dot_line(acc, w, x, s);
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side&, const Int8Block&) {
    return acc;
  }
};

// Codes 0 .. 63, meaning code - 32, each half of the block times its own int8 scale (Side::codes: a pair of int16 in a
// lane). The result is below 2^24, so that it is exact as a float too. A step is two lines.
struct DotQ6 {
  static constexpr int kSteps = 4;
  struct Lines {
    ByteLine line[2];
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
      const int j = 2 * s + l;
      out.line[l] = nibbles(block, j);
      const uint8_t* high = block + 64 * (4 + j / 4);
      for (int i = 0; i < 64; ++i) out.line[l].code[i] |= uint8_t((high[i] >> 2 * (j & 3) & 3) << 4);
    }
    return out;
  }
  template <class Side>
  static KV_INLINE Acc step(Acc acc, const Lines& w, const Side&, const Int8Block& x, int s) {
    acc.half[s / 2] = dot_line(dot_line(acc.half[s / 2], w.line[0], x, 2 * s), w.line[1], x, 2 * s + 1);
    return acc;
  }
  template <class Side>
  static KV_INLINE I32x16 finish(Acc acc, const Side& side, const Int8Block&) {
    I32x16 out;
    for (int i = 0; i < 16; ++i) {
      const int32_t low = int16_t(side.codes.lane[i]), high = side.codes.lane[i] >> 16;
      out.lane[i] = acc.half[0].lane[i] * low + acc.half[1].lane[i] * high;
    }
    return out;
  }
};

}  // namespace kvasir::cpu::KV_ISA
