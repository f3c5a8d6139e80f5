// SPDX-License-Identifier: MIT
//
// The block-quantised weight types as the integer product sees them: where a block's lines are, what stands beside the
// codes (Side: scales of 16 rows for one block of 32), and which dot product its codes want. value() is element k of a
// block dequantised, for the product in f32: exact, since no product of a scale and a code needs more than 24 bits.
// Layout: pack/pack.cpp.
#pragma once

#include "simd/generic/int8_block.h"

namespace kvasir::cpu::KV_ISA {

struct SideScale {
  F32x16 scale;
};
struct SideMinimum {
  F32x16 scale, minimum;
};
struct SideCodes {
  F32x16 scale;
  I32x16 codes;
};  // a pair of int16 in each lane: scales of the halves of the block

// Byte k of the 32 codes in eight lines, `bits` wide, from bit `shift` of the byte.
KV_INLINE I32x16 code_field(const uint8_t* lines, int k, int shift, int bits) {
  return shift_right(load_i32(lines + 64 * (k / 4)), 8 * (k % 4) + shift) & broadcast_i32((1 << bits) - 1);
}
// Element k of a block of nibbles: the low ones are elements 0 .. 15.
KV_INLINE I32x16 nibble(const uint8_t* block, int k) { return code_field(block, k % 16, k < 16 ? 0 : 4, 4); }

struct FormatQ8_0 {
  static constexpr WeightUnit kUnit = weight_unit(WeightType::kQ8_0);
  static constexpr uint32_t kBlockLines = 8, kUnitBlocks = 2;
  static constexpr bool kMinimum = false;
  using Side = SideScale;
  using Dot = DotQ8;
  static KV_INLINE void sides(const uint8_t* unit, size_t step, Side* out) {
    for (size_t b = 0; b < kUnitBlocks; ++b) out[b * step].scale = load_f16(unit + 16 * 64 + b * 32);
  }
  static KV_INLINE F32x16 value(const uint8_t* block, int k, const Side& side) {
    return side.scale * to_float(code_field(block, k, 0, 8) - broadcast_i32(128));
  }
};

struct FormatQ4_0 {
  static constexpr WeightUnit kUnit = weight_unit(WeightType::kQ4_0);
  static constexpr uint32_t kBlockLines = 4, kUnitBlocks = 2;
  static constexpr bool kMinimum = false;
  using Side = SideScale;
  using Dot = DotQ4<true>;
  static KV_INLINE void sides(const uint8_t* unit, size_t step, Side* out) {
    for (size_t b = 0; b < kUnitBlocks; ++b) out[b * step].scale = load_f16(unit + 8 * 64 + b * 32);
  }
  static KV_INLINE F32x16 value(const uint8_t* block, int k, const Side& side) {
    return side.scale * to_float(nibble(block, k) - broadcast_i32(8));
  }
};

// Field f of the sixteen 6-bit fields in three words a lane: five in each word, the last in the three 2-bit tops.
KV_INLINE I32x16 six_bit_field(const I32x16* word, int f) {
  if (f < 15) return shift_right(word[f / 5], 6 * (f % 5)) & broadcast_i32(63);
  return shift_right(word[0], 30) | (shift_right(word[1], 28) & broadcast_i32(12)) |
         (shift_right(word[2], 26) & broadcast_i32(48));
}

struct FormatQ4_K {
  static constexpr WeightUnit kUnit = weight_unit(WeightType::kQ4_K);
  static constexpr uint32_t kBlockLines = 4, kUnitBlocks = 8;
  static constexpr bool kMinimum = true;
  using Side = SideMinimum;
  using Dot = DotQ4<false>;
  static KV_INLINE void sides(const uint8_t* unit, size_t step, Side* out) {
    const uint8_t* p = unit + 32 * 64;
    const I32x16 word[3] = {load_i32(p), load_i32(p + 64), load_i32(p + 128)};
    const F32x16 d = load_f16(p + 192), m = load_f16(p + 224);
    KV_UNROLL(8)
    for (int b = 0; b < 8; ++b) {
      Side& side = out[size_t(b) * step];
      side.scale = d * to_float(six_bit_field(word, b));
      side.minimum = m * to_float(six_bit_field(word, b + 8));
    }
  }
  static KV_INLINE F32x16 value(const uint8_t* block, int k, const Side& side) {
    return side.scale * to_float(nibble(block, k)) - side.minimum;
  }
};

struct FormatQ6_K {
  static constexpr WeightUnit kUnit = weight_unit(WeightType::kQ6_K);
  static constexpr uint32_t kBlockLines = 6, kUnitBlocks = 8;
  static constexpr bool kMinimum = false;
  using Side = SideCodes;
  using Dot = DotQ6;
  static KV_INLINE void sides(const uint8_t* unit, size_t step, Side* out) {
    const uint8_t* p = unit + 48 * 64;
    const F32x16 d = load_f16(p + 256);
    for (size_t b = 0; b < kUnitBlocks; ++b) out[b * step] = {d, load_i8_pairs(p + b * 32)};
  }
  static KV_INLINE F32x16 value(const uint8_t* block, int k, const Side& side) {
    const I32x16 high = code_field(block + 64 * (4 + k / 16), k % 4, 2 * (k / 4 % 4), 2);
    const I32x16 code = (nibble(block, k) | shift_left(high, 4)) - broadcast_i32(32);
    const I32x16 scale = shift_right_signed(k < 16 ? shift_left(side.codes, 16) : side.codes, 16);
    return side.scale * to_float(scale) * to_float(code);
  }
};

}  // namespace kvasir::cpu::KV_ISA
