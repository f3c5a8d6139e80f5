// SPDX-License-Identifier: MIT
//
// Sixteen lanes in plain C++: the meaning of every operation that avx2/vec.h and avx512/vec.h do with intrinsics. The
// same names in each; a kernel written over them gives the same bits in each.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

struct F32x16 {
  float lane[16];
};
struct I32x16 {
  int32_t lane[16];
};

// A new vector from one expression of the lane number i.
#define KV_LANES(Type, expression)                         \
  Type out;                                                \
  for (int i = 0; i < 16; ++i) out.lane[i] = (expression); \
  return out

// ---- memory: any alignment ----
KV_INLINE F32x16 load(const float* p) {
  F32x16 out;
  std::memcpy(out.lane, p, 64);
  return out;
}
KV_INLINE void store(float* p, F32x16 a) { std::memcpy(p, a.lane, 64); }
// The first n lanes, 0 <= n <= 16; the others load as zero, and are neither read nor written.
KV_INLINE F32x16 load_first(const float* p, uint32_t n) { KV_LANES(F32x16, uint32_t(i) < n ? p[i] : 0.0f); }
KV_INLINE void store_first(float* p, F32x16 a, uint32_t n) {
  for (uint32_t i = 0; i < n && i < 16; ++i) p[i] = a.lane[i];
}
KV_INLINE I32x16 load_i32(const void* p) {
  I32x16 out;
  std::memcpy(out.lane, p, 64);
  return out;
}
KV_INLINE void store_i32(void* p, I32x16 a) { std::memcpy(p, a.lane, 64); }
KV_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
KV_INLINE void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

// ---- float arithmetic ----
KV_INLINE F32x16 broadcast(float x) { KV_LANES(F32x16, (void(i), x)); }
KV_INLINE F32x16 zero() { return broadcast(0.0f); }
KV_INLINE F32x16 operator+(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] + b.lane[i]); }
KV_INLINE F32x16 operator-(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] - b.lane[i]); }
KV_INLINE F32x16 operator*(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] * b.lane[i]); }
KV_INLINE F32x16 operator/(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] / b.lane[i]); }
// a * b + c and c - a * b, rounded once.
KV_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  KV_LANES(F32x16, __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]));
}
KV_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  KV_LANES(F32x16, __builtin_fmaf(-a.lane[i], b.lane[i], c.lane[i]));
}
// Where a lane is NaN in either operand, the result is the second one. A denormal may come back as it is or as zero: do
// arithmetic with the result before it is seen.
KV_INLINE F32x16 min(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]); }
KV_INLINE F32x16 max(F32x16 a, F32x16 b) { KV_LANES(F32x16, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]); }
// a < b ? x : y (false where either is NaN).
KV_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  KV_LANES(F32x16, a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i]);
}

// ---- integer arithmetic (wraps) ----
KV_INLINE I32x16 broadcast_i32(int32_t x) { KV_LANES(I32x16, (void(i), x)); }
KV_INLINE I32x16 operator+(I32x16 a, I32x16 b) { KV_LANES(I32x16, int32_t(uint32_t(a.lane[i]) + uint32_t(b.lane[i]))); }
KV_INLINE I32x16 operator-(I32x16 a, I32x16 b) { KV_LANES(I32x16, int32_t(uint32_t(a.lane[i]) - uint32_t(b.lane[i]))); }
KV_INLINE I32x16 operator&(I32x16 a, I32x16 b) { KV_LANES(I32x16, a.lane[i] & b.lane[i]); }
KV_INLINE I32x16 operator|(I32x16 a, I32x16 b) { KV_LANES(I32x16, a.lane[i] | b.lane[i]); }
KV_INLINE I32x16 operator^(I32x16 a, I32x16 b) { KV_LANES(I32x16, a.lane[i] ^ b.lane[i]); }
KV_INLINE I32x16 max(I32x16 a, I32x16 b) { KV_LANES(I32x16, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]); }
// By n bits, 0 <= n < 32.
KV_INLINE I32x16 shift_left(I32x16 a, int n) { KV_LANES(I32x16, int32_t(uint32_t(a.lane[i]) << n)); }
KV_INLINE I32x16 shift_right(I32x16 a, int n) { KV_LANES(I32x16, int32_t(uint32_t(a.lane[i]) >> n)); }
KV_INLINE I32x16 shift_right_signed(I32x16 a, int n) { KV_LANES(I32x16, a.lane[i] >> n); }
template <int n>
KV_INLINE I32x16 shift_left(I32x16 a) {
  return shift_left(a, n);
}
template <int n>
KV_INLINE I32x16 shift_right(I32x16 a) {
  return shift_right(a, n);
}

// ---- conversion ----
KV_INLINE F32x16 to_float(I32x16 a) { KV_LANES(F32x16, float(a.lane[i])); }
KV_INLINE F32x16 as_float(I32x16 a) { return std::bit_cast<F32x16>(a); }
KV_INLINE I32x16 as_int(F32x16 a) { return std::bit_cast<I32x16>(a); }
KV_INLINE F32x16 abs(F32x16 a) { return as_float(as_int(a) & broadcast_i32(0x7fffffff)); }

// Sixteen consecutive f16, bf16, int8 or uint8 to f32 and back (f16, bf16: to nearest even, NaN stays NaN).
KV_INLINE F32x16 load_f16(const void* p) {
  uint16_t h[16];
  std::memcpy(h, p, 32);
  KV_LANES(F32x16, sdk::f32_from_f16(h[i]));
}
KV_INLINE void store_f16(void* p, F32x16 a) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = sdk::f16_from_f32(a.lane[i]);
  std::memcpy(p, h, 32);
}
KV_INLINE F32x16 load_bf16(const void* p) {
  uint16_t h[16];
  std::memcpy(h, p, 32);
  KV_LANES(F32x16, sdk::f32_from_bf16(h[i]));
}
KV_INLINE F32x16 load_i8(const int8_t* p) { KV_LANES(F32x16, float(p[i])); }
KV_INLINE I32x16 load_u8_i32(const uint8_t* p) { KV_LANES(I32x16, int32_t(p[i])); }
// Lane i: elements 2 i and 2 i + 1 of 32 int8, as two int16 in its low and high half.
KV_INLINE I32x16 load_i8_pairs(const void* p) {
  int8_t b[32];
  std::memcpy(b, p, 32);
  KV_LANES(I32x16, int32_t(uint32_t(uint16_t(b[2 * i])) | uint32_t(uint16_t(b[2 * i + 1])) << 16));
}
// The low 16 or 8 bits of each lane.
KV_INLINE void store_low16(void* p, I32x16 a) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = uint16_t(a.lane[i]);
  std::memcpy(p, h, 32);
}
KV_INLINE void store_low8(void* p, I32x16 a) {
  uint8_t b[16];
  for (int i = 0; i < 16; ++i) b[i] = uint8_t(a.lane[i]);
  std::memcpy(p, b, 16);
}

// ---- across lanes: a fixed tree, lane i with lane i + 8, then + 4, + 2, + 1 ----
KV_INLINE float sum_lanes(F32x16 a) {
  for (int n = 8; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) a.lane[i] = a.lane[i] + a.lane[i + n];
  return a.lane[0];
}
KV_INLINE float max_lanes(F32x16 a) {  // lanes must not be NaN
  for (int n = 8; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) a.lane[i] = a.lane[i] > a.lane[i + n] ? a.lane[i] : a.lane[i + n];
  return a.lane[0];
}
KV_INLINE int32_t max_lanes(I32x16 a) {
  int32_t out = a.lane[0];
  for (int i = 1; i < 16; ++i) out = out > a.lane[i] ? out : a.lane[i];
  return out;
}
KV_INLINE int32_t sum_lanes(I32x16 a) {
  uint32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += uint32_t(a.lane[i]);
  return int32_t(sum);
}
KV_INLINE float first_lane(F32x16 a) { return a.lane[0]; }

// even = elements 0, 2, 4 .. 30 of the 32 elements (a, b), odd = 1, 3 .. 31; interleave is the inverse.
struct F32Pair {
  F32x16 a, b;
};
KV_INLINE F32Pair deinterleave(F32x16 a, F32x16 b) {
  F32Pair out;
  for (int i = 0; i < 8; ++i) {
    out.a.lane[i] = a.lane[2 * i], out.a.lane[8 + i] = b.lane[2 * i];
    out.b.lane[i] = a.lane[2 * i + 1], out.b.lane[8 + i] = b.lane[2 * i + 1];
  }
  return out;
}
KV_INLINE F32Pair interleave(F32x16 even, F32x16 odd) {
  F32Pair out;
  for (int i = 0; i < 8; ++i) {
    out.a.lane[2 * i] = even.lane[i], out.a.lane[2 * i + 1] = odd.lane[i];
    out.b.lane[2 * i] = even.lane[8 + i], out.b.lane[2 * i + 1] = odd.lane[8 + i];
  }
  return out;
}

#undef KV_LANES

}  // namespace kvasir::cpu::KV_ISA
