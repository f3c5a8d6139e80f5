// SPDX-License-Identifier: MIT
//
// Sixteen lanes as one vector of AVX-512 (F, BW, VL, DQ); scalar/vec.h says what each operation means.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};

KV_INLINE __mmask16 first_lanes(uint32_t n) { return __mmask16(n < 16 ? (1u << n) - 1 : 0xffffu); }

// ---- memory ----
KV_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
KV_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
KV_INLINE F32x16 load_first(const float* p, uint32_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
KV_INLINE void store_first(float* p, F32x16 a, uint32_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
KV_INLINE I32x16 load_i32(const void* p) { return {_mm512_loadu_si512(p)}; }
KV_INLINE void store_i32(void* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }
KV_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
KV_INLINE void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

// ---- float arithmetic ----
KV_INLINE F32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
KV_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }
KV_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
KV_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
KV_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
KV_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
KV_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
KV_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
KV_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
KV_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
KV_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
}

// ---- integer arithmetic ----
KV_INLINE I32x16 broadcast_i32(int32_t x) { return {_mm512_set1_epi32(x)}; }
KV_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
KV_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
KV_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
KV_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
KV_INLINE I32x16 operator^(I32x16 a, I32x16 b) { return {_mm512_xor_si512(a.v, b.v)}; }
KV_INLINE I32x16 max(I32x16 a, I32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
KV_INLINE I32x16 shift_left(I32x16 a, int n) { return {_mm512_slli_epi32(a.v, unsigned(n))}; }
KV_INLINE I32x16 shift_right(I32x16 a, int n) { return {_mm512_srli_epi32(a.v, unsigned(n))}; }
KV_INLINE I32x16 shift_right_signed(I32x16 a, int n) { return {_mm512_srai_epi32(a.v, unsigned(n))}; }
template <int n>
KV_INLINE I32x16 shift_left(I32x16 a) {
  return shift_left(a, n);
}
template <int n>
KV_INLINE I32x16 shift_right(I32x16 a) {
  return shift_right(a, n);
}

// ---- conversion ----
KV_INLINE F32x16 to_float(I32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
KV_INLINE F32x16 as_float(I32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
KV_INLINE I32x16 as_int(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
KV_INLINE F32x16 abs(F32x16 a) { return as_float(as_int(a) & broadcast_i32(0x7fffffff)); }
KV_INLINE __m256i load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
KV_INLINE F32x16 load_f16(const void* p) { return {_mm512_cvtph_ps(load_half(p))}; }
KV_INLINE void store_f16(void* p, F32x16 a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
KV_INLINE F32x16 load_bf16(const void* p) {
  return as_float(shift_left(I32x16{_mm512_cvtepu16_epi32(load_half(p))}, 16));
}
KV_INLINE F32x16 load_i8(const int8_t* p) {
  return to_float(I32x16{_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))});
}
KV_INLINE I32x16 load_u8_i32(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
KV_INLINE I32x16 load_i8_pairs(const void* p) { return {_mm512_cvtepi8_epi16(load_half(p))}; }
KV_INLINE void store_low16(void* p, I32x16 a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
KV_INLINE void store_low8(void* p, I32x16 a) { _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v)); }

// ---- across lanes ----
KV_INLINE __m256 low_half(__m512 a) { return _mm512_castps512_ps256(a); }
KV_INLINE __m256 high_half(__m512 a) { return _mm512_extractf32x8_ps(a, 1); }
KV_INLINE float sum_lanes(F32x16 a) {
  const __m256 s8 = _mm256_add_ps(low_half(a.v), high_half(a.v));
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
KV_INLINE float max_lanes(F32x16 a) {
  const __m256 m8 = _mm256_max_ps(low_half(a.v), high_half(a.v));
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}
KV_INLINE int32_t max_lanes(I32x16 a) { return _mm512_reduce_max_epi32(a.v); }
KV_INLINE int32_t sum_lanes(I32x16 a) { return _mm512_reduce_add_epi32(a.v); }
KV_INLINE float first_lane(F32x16 a) { return _mm512_cvtss_f32(a.v); }

struct F32Pair {
  F32x16 a, b;
};
KV_INLINE F32Pair deinterleave(F32x16 a, F32x16 b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return {{_mm512_permutex2var_ps(a.v, even, b.v)}, {_mm512_permutex2var_ps(a.v, odd, b.v)}};
}
KV_INLINE F32Pair interleave(F32x16 even, F32x16 odd) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {{_mm512_permutex2var_ps(even.v, low, odd.v)}, {_mm512_permutex2var_ps(even.v, high, odd.v)}};
}

}  // namespace kvasir::cpu::KV_ISA
