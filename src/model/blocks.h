// SPDX-License-Identifier: MIT
//
// The codes inside one block of each compressed type: where the bits of value i and of scale j lie. The layouts are in
// kvasir/types.h. Used by dequantize and by the conversions that keep codes.
#pragma once

#include <cstdint>
#include <cstring>

#include "model/half.h"

namespace kvasir {

inline uint16_t load_u16(const uint8_t* data) {
  uint16_t bits = 0;
  std::memcpy(&bits, data, sizeof bits);
  return bits;
}

inline float load_f16(const uint8_t* data) { return f16_to_f32(load_u16(data)); }

// 4-bit codes of a block of 32: low nibbles first.
inline int nibble32(const uint8_t* q, uint32_t i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

// Fifth bits of a block of 32: bit i of a 32-bit word.
inline int high_bit32(const uint8_t* h, uint32_t i) { return (h[i / 8] >> (i % 8)) & 1; }

inline constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 2-bit codes of Q2_K and Q3_K: 128 values share 32 bytes, 32 values per bit pair.
inline int code2(const uint8_t* q, uint32_t i) { return (q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3; }

struct Q3K {
  const uint8_t* block;  // u8 h[32], q[64], s[12]; f16 d

  // The third bit of value i is bit i / 32 of h[i % 32].
  int code(uint32_t i) const { return code2(block + 32, i) | (((block[i % 32] >> (i / 32)) & 1) << 2); }
  // Scale j of 16: four low bits in nibbles of s[0..7], two high bits in s[8..11].
  int scale(uint32_t j) const {
    const uint8_t* s = block + 96;
    const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return low | (((s[8 + j % 4] >> (j / 4 * 2)) & 3) << 4);
  }
};

// Scales and minimums of Q4_K and Q5_K: eight pairs of 6 bits in 12 bytes. The first four lie in the low six bits of
// s[0..7]; the last four have their low nibbles in s[8..11] and their high bits on top of the first.
inline int k4_scale(const uint8_t* s, uint32_t j) { return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6 << 4); }
inline int k4_minimum(const uint8_t* s, uint32_t j) { return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6 << 4); }

// 4-bit codes of Q4_K and Q5_K: 64 values share 32 bytes, low nibbles first.
inline int code4(const uint8_t* q, uint32_t i) { return (q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15; }

// 6-bit codes of Q6_K: of each 128 values, the first 64 have low nibbles, the last 64 high ones; two more bits in h.
inline int code6(const uint8_t* l, const uint8_t* h, uint32_t i) {
  const int low = (l[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4)) & 15;
  return low | (code2(h, i) << 4);
}

struct Iq4Xs {
  const uint8_t* block;  // f16 d; u16 h; u8 l[4], q[128]

  int scale(uint32_t j) const {
    const int low = (block[4 + j / 2] >> (j % 2 * 4)) & 15;
    const int high = (load_u16(block + 2) >> (2 * j)) & 3;
    return low | high << 4;
  }
  int value(uint32_t i) const { return kIq4Table[nibble32(block + 8 + i / 32 * 16, i % 32)]; }
};

}  // namespace kvasir
