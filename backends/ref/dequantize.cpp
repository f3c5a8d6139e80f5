// SPDX-License-Identifier: MIT
//
// Every block type, one function per type, each filling all elements of one block. For value i of a K block the
// comments use h = i / 128 (its half), j = i % 128 / 32 (its quarter of that half) and l = i % 32; "bits a..b" counts
// from the least significant bit. Products of a scale and a code are exact in f32, so each x is rounded at most once,
// whatever the order of multiplication.
#include "dequantize.h"

#include <algorithm>
#include <cstring>

#include "kvasir/types.h"
#include "sdk/half.h"
#include "sdk/types.h"

namespace kvasir::ref {

namespace {

constexpr uint32_t kMaxBlock = 256;

uint32_t byte_at(const std::byte* block, uint32_t offset) { return std::to_integer<uint32_t>(block[offset]); }
float signed_at(const std::byte* block, uint32_t offset) {
  return static_cast<float>(static_cast<int8_t>(block[offset]));
}
uint32_t u16_at(const std::byte* block, uint32_t offset) {
  return byte_at(block, offset) | byte_at(block, offset + 1) << 8;
}
float half_at(const std::byte* block, uint32_t offset) {
  return sdk::f32_from_f16(static_cast<uint16_t>(u16_at(block, offset)));
}

// Nibble i of 32 in 16 bytes: the low nibbles are values 0..15, the high ones 16..31.
uint32_t nibble(const std::byte* q, uint32_t i) { return byte_at(q, i % 16) >> (i < 16 ? 0 : 4) & 15; }
// Bit i of 32 in 4 bytes.
uint32_t bit(const std::byte* h, uint32_t i) { return byte_at(h, i / 8) >> i % 8 & 1; }

void f32(const std::byte* block, float* x) { std::memcpy(x, block, sizeof *x); }
void f16(const std::byte* block, float* x) { *x = half_at(block, 0); }
void bf16(const std::byte* block, float* x) { *x = sdk::f32_from_bf16(static_cast<uint16_t>(u16_at(block, 0))); }

// f16 d at 0; i8 q[32] at 2
void q8_0(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * signed_at(block, 2 + i);
}

// f16 d at 0; u8 q[16] at 2
void q4_0(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * (static_cast<float>(nibble(block + 2, i)) - 8);
}

// f16 d at 0, m at 2; u8 q[16] at 4
void q4_1(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

// f16 d at 0; u8 h[4] at 2, q[16] at 6
void q5_0(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t q = nibble(block + 6, i) | bit(block + 2, i) << 4;
    x[i] = d * (static_cast<float>(q) - 16);
  }
}

// f16 d at 0, m at 2; u8 h[4] at 4, q[16] at 8
void q5_1(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t q = nibble(block + 8, i) | bit(block + 4, i) << 4;
    x[i] = d * static_cast<float>(q) + m;
  }
}

// u8 s[16] at 0, q[64] at 16; f16 d at 80, m at 82
// code: bits 2j..2j+1 of q[32h + l]; s[i / 16] has the scale in bits 0..3 and the minimum in bits 4..7
void q2_k(const std::byte* block, float* x) {
  const float d = half_at(block, 80);
  const float m = half_at(block, 82);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t h = i / 128, j = i % 128 / 32, l = i % 32;
    const uint32_t q = byte_at(block, 16 + 32 * h + l) >> 2 * j & 3;
    const uint32_t s = byte_at(block, i / 16);
    x[i] = d * static_cast<float>(s & 15) * static_cast<float>(q) - m * static_cast<float>(s >> 4);
  }
}

// u8 h[32] at 0, q[64] at 32, s[12] at 96; f16 d at 108
// code: bits 0..1 are bits 2j..2j+1 of q[32h + l], bit 2 is bit 4h + j of h[l]
// scale k = i / 16: bits 0..3 are the low (k < 8) or high nibble of s[k % 8],
//                   bits 4..5 are bits 2(k / 4)..2(k / 4)+1 of s[8 + k % 4]
void q3_k(const std::byte* block, float* x) {
  const float d = half_at(block, 108);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t h = i / 128, j = i % 128 / 32, l = i % 32, k = i / 16;
    const uint32_t q = (byte_at(block, 32 + 32 * h + l) >> 2 * j & 3) | (byte_at(block, l) >> (4 * h + j) & 1) << 2;
    const uint32_t low = byte_at(block, 96 + k % 8) >> (k < 8 ? 0 : 4) & 15;
    const uint32_t s = low | (byte_at(block, 104 + k % 4) >> 2 * (k / 4) & 3) << 4;
    x[i] = d * (static_cast<float>(s) - 32) * (static_cast<float>(q) - 4);
  }
}

// The 8 pairs of 6-bit numbers (scale s, minimum t) in the 12 bytes p of Q4_K and Q5_K.
//   k < 4:  s is bits 0..5 of p[k], t is bits 0..5 of p[k + 4]
//   else    s is bits 0..3 of p[k + 4] and, above them, bits 6..7 of p[k - 4]
//           t is bits 4..7 of p[k + 4] and, above them, bits 6..7 of p[k]
struct ScalePair {
  float s, t;
};
ScalePair scale_pair(const std::byte* p, uint32_t k) {
  uint32_t s = 0, t = 0;
  if (k < 4) {
    s = byte_at(p, k) & 63;
    t = byte_at(p, k + 4) & 63;
  } else {
    s = (byte_at(p, k + 4) & 15) | byte_at(p, k - 4) >> 6 << 4;
    t = byte_at(p, k + 4) >> 4 | byte_at(p, k) >> 6 << 4;
  }
  return {static_cast<float>(s), static_cast<float>(t)};
}

// f16 d at 0, m at 2; u8 s[12] at 4, q[128] at 16
// with k = i / 32: code is the low (k even) or high nibble of q[32(k / 2) + l]; the pair is number k
void q4_k(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t k = i / 32, l = i % 32;
    const uint32_t q = byte_at(block, 16 + 32 * (k / 2) + l) >> 4 * (k % 2) & 15;
    const ScalePair pair = scale_pair(block + 4, k);
    x[i] = d * pair.s * static_cast<float>(q) - m * pair.t;
  }
}

// f16 d at 0, m at 2; u8 s[12] at 4, h[32] at 16, q[128] at 48
// as Q4_K; bit 4 of the code is bit k of h[l]
void q5_k(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t k = i / 32, l = i % 32;
    const uint32_t q = (byte_at(block, 48 + 32 * (k / 2) + l) >> 4 * (k % 2) & 15) | (byte_at(block, 16 + l) >> k & 1)
                                                                                         << 4;
    const ScalePair pair = scale_pair(block + 4, k);
    x[i] = d * pair.s * static_cast<float>(q) - m * pair.t;
  }
}

// u8 l[128] at 0, h[64] at 128; i8 s[16] at 192; f16 d at 208
// code: bits 0..3 are the low (j < 2) or high nibble of l[64h + 32(j % 2) + l],
//       bits 4..5 are bits 2j..2j+1 of h[32h + l]
void q6_k(const std::byte* block, float* x) {
  const float d = half_at(block, 208);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t h = i / 128, j = i % 128 / 32, l = i % 32;
    const uint32_t low = byte_at(block, 64 * h + 32 * (j % 2) + l) >> (j < 2 ? 0 : 4) & 15;
    const uint32_t q = low | (byte_at(block, 128 + 32 * h + l) >> 2 * j & 3) << 4;
    x[i] = d * signed_at(block, 192 + i / 16) * (static_cast<float>(q) - 32);
  }
}

constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// f16 d at 0; u8 q[16] at 2
void iq4_nl(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * kIq4[nibble(block + 2, i)];
}

// f16 d at 0; u16 h at 2; u8 l[4] at 4, q[128] at 8
// with k = i / 32: codes are 32 nibbles in the 16 bytes from q[16k]; scale bits 0..3 are the low (k even) or high
// nibble of l[k / 2], bits 4..5 are bits 2k..2k+1 of h
void iq4_xs(const std::byte* block, float* x) {
  const float d = half_at(block, 0);
  for (uint32_t k = 0; k < 8; ++k) {
    const uint32_t s = (byte_at(block, 4 + k / 2) >> 4 * (k % 2) & 15) | (u16_at(block, 2) >> 2 * k & 3) << 4;
    const float scale = d * (static_cast<float>(s) - 32);
    for (uint32_t i = 0; i < 32; ++i) x[32 * k + i] = scale * kIq4[nibble(block + 8 + 16 * k, i)];
  }
}

using BlockFunction = void (*)(const std::byte* block, float* x);
constexpr BlockFunction kFunctions[sdk::kTypeCount] = {
    nullptr, f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs,
};

}  // namespace

void dequantize(uint32_t type, const std::byte* blocks, uint32_t width, float* out) {
  const BlockFunction function = kFunctions[type];
  const uint32_t block = sdk::kTypes[type].block;
  const uint32_t whole = width / block * block;
  for (uint32_t first = 0; first < whole; first += block) {
    function(blocks, out + first);
    blocks += sdk::kTypes[type].bytes;
  }
  if (whole == width) return;
  float last[kMaxBlock];
  function(blocks, last);
  std::copy_n(last, width - whole, out + whole);
}

}  // namespace kvasir::ref
