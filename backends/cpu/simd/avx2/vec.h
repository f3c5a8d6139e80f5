// SPDX-License-Identifier: MIT
//
// Sixteen lanes as two vectors of AVX2 + FMA + F16C; scalar/vec.h says what each operation means.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};

// Lanes 0 .. n - 1 of a half on, 0 <= n.
KV_INLINE __m256i first_lanes(int32_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
KV_INLINE __m256i load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// ---- memory ----
KV_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
KV_INLINE void store(float* p, F32x16 a) { _mm256_storeu_ps(p, a.lo), _mm256_storeu_ps(p + 8, a.hi); }
KV_INLINE F32x16 load_first(const float* p, uint32_t n) {
  if (n <= 8) return {_mm256_maskload_ps(p, first_lanes(int32_t(n))), _mm256_setzero_ps()};
  return {_mm256_loadu_ps(p), _mm256_maskload_ps(p + 8, first_lanes(int32_t(n) - 8))};
}
KV_INLINE void store_first(float* p, F32x16 a, uint32_t n) {
  if (n <= 8) return _mm256_maskstore_ps(p, first_lanes(int32_t(n)), a.lo);
  _mm256_storeu_ps(p, a.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(int32_t(n) - 8), a.hi);
}
KV_INLINE I32x16 load_i32(const void* p) { return {load_half(p), load_half(static_cast<const char*>(p) + 32)}; }
KV_INLINE void store_i32(void* p, I32x16 a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), a.lo), _mm256_storeu_si256(static_cast<__m256i*>(p) + 1, a.hi);
}
KV_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
KV_INLINE void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

// ---- float arithmetic ----
KV_INLINE F32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
KV_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
KV_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
KV_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
KV_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
KV_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}

// ---- integer arithmetic ----
KV_INLINE I32x16 broadcast_i32(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
KV_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
KV_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
KV_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
KV_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
KV_INLINE I32x16 operator^(I32x16 a, I32x16 b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
KV_INLINE I32x16 max(I32x16 a, I32x16 b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
KV_INLINE I32x16 shift_left(I32x16 a, int n) { return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)}; }
KV_INLINE I32x16 shift_right(I32x16 a, int n) { return {_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)}; }
KV_INLINE I32x16 shift_right_signed(I32x16 a, int n) {
  return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}
template <int n>
KV_INLINE I32x16 shift_left(I32x16 a) {
  return shift_left(a, n);
}
template <int n>
KV_INLINE I32x16 shift_right(I32x16 a) {
  return shift_right(a, n);
}

// ---- conversion ----
KV_INLINE F32x16 to_float(I32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
KV_INLINE F32x16 as_float(I32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
KV_INLINE I32x16 as_int(F32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
KV_INLINE F32x16 abs(F32x16 a) { return as_float(as_int(a) & broadcast_i32(0x7fffffff)); }
KV_INLINE F32x16 load_f16(const void* p) {
  const __m256i h = load_half(p);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))};
}
KV_INLINE void store_f16(void* p, F32x16 a) {
  __m128i* out = static_cast<__m128i*>(p);
  _mm_storeu_si128(out, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(out + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
KV_INLINE F32x16 load_bf16(const void* p) {
  const __m256i h = load_half(p);
  const I32x16 wide = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(h)),
                       _mm256_cvtepu16_epi32(_mm256_extracti128_si256(h, 1))};
  return as_float(shift_left(wide, 16));
}
KV_INLINE F32x16 load_i8(const int8_t* p) {
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return to_float(I32x16{_mm256_cvtepi8_epi32(b), _mm256_cvtepi8_epi32(_mm_srli_si128(b, 8))});
}
KV_INLINE I32x16 load_u8_i32(const uint8_t* p) {
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(b), _mm256_cvtepu8_epi32(_mm_srli_si128(b, 8))};
}
KV_INLINE I32x16 load_i8_pairs(const void* p) {
  const __m256i b = load_half(p);
  return {_mm256_cvtepi8_epi16(_mm256_castsi256_si128(b)), _mm256_cvtepi8_epi16(_mm256_extracti128_si256(b, 1))};
}
// The low 16 bits of each lane, in order.
KV_INLINE __m256i pack_low16(I32x16 a) {
  const __m256i mask = _mm256_set1_epi32(0xffff);
  const __m256i mixed = _mm256_packus_epi32(_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask));
  return _mm256_permute4x64_epi64(mixed, 0xd8);
}
KV_INLINE void store_low16(void* p, I32x16 a) { _mm256_storeu_si256(static_cast<__m256i*>(p), pack_low16(a)); }
KV_INLINE void store_low8(void* p, I32x16 a) {
  const __m256i low = pack_low16(a & broadcast_i32(0xff));
  _mm_storeu_si128(static_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}

// ---- across lanes ----
KV_INLINE float sum_lanes(F32x16 a) {
  const __m256 s8 = _mm256_add_ps(a.lo, a.hi);
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
KV_INLINE float max_lanes(F32x16 a) {
  const __m256 m8 = _mm256_max_ps(a.lo, a.hi);
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}
KV_INLINE int32_t max_lanes(I32x16 a) {
  const __m256i m8 = _mm256_max_epi32(a.lo, a.hi);
  const __m128i m4 = _mm_max_epi32(_mm256_castsi256_si128(m8), _mm256_extracti128_si256(m8, 1));
  const __m128i m2 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(m2, _mm_shuffle_epi32(m2, 0xb1)));
}
KV_INLINE int32_t sum_lanes(I32x16 a) {
  const __m256i s8 = _mm256_add_epi32(a.lo, a.hi);
  const __m128i s4 = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
  const __m128i s2 = _mm_add_epi32(s4, _mm_shuffle_epi32(s4, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s2, _mm_shuffle_epi32(s2, 0xb1)));
}
KV_INLINE float first_lane(F32x16 a) { return _mm256_cvtss_f32(a.lo); }

struct F32Pair {
  F32x16 a, b;
};
// Of 16 elements (a, b): the eight even ones, the eight odd ones.
template <int imm>
KV_INLINE __m256 every_second(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, imm)), 0xd8));
}
KV_INLINE F32Pair deinterleave(F32x16 a, F32x16 b) {
  return {{every_second<0x88>(a.lo, a.hi), every_second<0x88>(b.lo, b.hi)},
          {every_second<0xdd>(a.lo, a.hi), every_second<0xdd>(b.lo, b.hi)}};
}
KV_INLINE F32x16 interleave_half(__m256 even, __m256 odd) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
KV_INLINE F32Pair interleave(F32x16 even, F32x16 odd) {
  return {interleave_half(even.lo, odd.lo), interleave_half(even.hi, odd.hi)};
}

}  // namespace kvasir::cpu::KV_ISA
