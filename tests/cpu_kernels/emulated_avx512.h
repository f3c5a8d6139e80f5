// SPDX-License-Identifier: MIT
//
// AVX-512 intrinsics without AVX-512: SIMDe's portable versions under the native names, so that the avx512 kernels run on
// any machine and can be compared with the scalar ones bit for bit. Include before anything of the kernels. The second
// part is what SIMDe 0.7 lacks, and its multiply-adds, which round twice; each does exactly what the manual says.
#pragma once

#define KV_EMULATED_INTRINSICS
#define KV_ARRAY_LANES
#define SIMDE_ENABLE_NATIVE_ALIASES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#pragma GCC diagnostic pop

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "sdk/half.h"

namespace emulated {

using F32 = std::array<float, 16>;
using I32 = std::array<int32_t, 16>;

// A vector of `To` whose lane i is f(i).
template <class To, class Lane, size_t n, class F>
To lanes(F f) {
  std::array<Lane, n> out;
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<Lane>(f(i));
  return std::bit_cast<To>(out);
}
inline F32 f32(__m512 a) { return std::bit_cast<F32>(a); }
inline I32 i32(__m512i a) { return std::bit_cast<I32>(a); }

inline __m512 fmadd(__m512 a, __m512 b, __m512 c) {
  const F32 x = f32(a), y = f32(b), z = f32(c);
  return lanes<__m512, float, 16>([&](size_t i) { return std::fma(x[i], y[i], z[i]); });
}
inline __m512 fnmadd(__m512 a, __m512 b, __m512 c) {
  const F32 x = f32(a), y = f32(b), z = f32(c);
  return lanes<__m512, float, 16>([&](size_t i) { return std::fma(-x[i], y[i], z[i]); });
}
inline __m512 maskz_loadu(uint32_t mask, const void* p) {
  const char* from = static_cast<const char*>(p);
  return lanes<__m512, float, 16>([&](size_t i) {
    float value = 0;
    if (mask >> i & 1) std::memcpy(&value, from + 4 * i, 4);
    return value;
  });
}
inline void mask_storeu(void* p, uint32_t mask, __m512 a) {
  const F32 value = f32(a);
  for (size_t i = 0; i < 16; ++i)
    if (mask >> i & 1) std::memcpy(static_cast<char*>(p) + 4 * i, &value[i], 4);
}
inline __m512 int_to_float(__m512i a) {
  const I32 x = i32(a);
  return lanes<__m512, float, 16>([&](size_t i) { return x[i]; });
}
inline __m512i shift_signed(__m512i a, unsigned n) {
  const I32 x = i32(a);
  return lanes<__m512i, int32_t, 16>([&](size_t i) { return x[i] >> (n < 31 ? n : 31); });
}
template <class From, class Vector>
__m512i widen(Vector a) {
  const auto x = std::bit_cast<std::array<From, sizeof(Vector) / sizeof(From)>>(a);
  return lanes<__m512i, int32_t, 16>([&](size_t i) { return x[i]; });
}
template <class To, class Lane>
To narrow(__m512i a) {
  const I32 x = i32(a);
  return lanes<To, Lane, 16>([&](size_t i) { return x[i]; });
}
inline __m512 half_to_float(__m256i a) {
  const auto h = std::bit_cast<std::array<uint16_t, 16>>(a);
  return lanes<__m512, float, 16>([&](size_t i) { return kvasir::sdk::f32_from_f16(h[i]); });
}
inline __m256i float_to_half(__m512 a) {
  const F32 x = f32(a);
  return lanes<__m256i, uint16_t, 16>([&](size_t i) { return kvasir::sdk::f16_from_f32(x[i]); });
}
inline __m256 half_of(__m512 a, size_t half) {
  const F32 x = f32(a);
  return lanes<__m256, float, 8>([&](size_t i) { return x[8 * half + i]; });
}
inline int32_t sum(__m512i a) {
  uint32_t out = 0;
  for (int32_t x : i32(a)) out += static_cast<uint32_t>(x);
  return static_cast<int32_t>(out);
}
inline int32_t largest(__m512i a) {
  int32_t out = INT32_MIN;
  for (int32_t x : i32(a)) out = out > x ? out : x;
  return out;
}
// Four products u8 * s8 added to each int32.
inline __m512i dot_bytes(__m512i acc, __m512i a, __m512i b) {
  const auto x = std::bit_cast<std::array<uint8_t, 64>>(a);
  const auto y = std::bit_cast<std::array<int8_t, 64>>(b);
  const I32 c = i32(acc);
  return lanes<__m512i, int32_t, 16>([&](size_t i) {
    int32_t out = c[i];
    for (size_t j = 4 * i; j < 4 * i + 4; ++j) out += x[j] * y[j];
    return out;
  });
}

// vdpbf16ps: the product of the odd bf16 is added first, then that of the even ones, each rounded once. Denormals count
// as zero, which the callers' floating-point state does here.
inline __m512 dot_bf16(__m512 acc, __m512i a, __m512i b) {
  const auto x = std::bit_cast<std::array<uint16_t, 32>>(a), y = std::bit_cast<std::array<uint16_t, 32>>(b);
  const F32 c = f32(acc);
  const auto value = [](uint16_t bits) { return kvasir::sdk::f32_from_bf16(bits); };
  return lanes<__m512, float, 16>([&](size_t i) {
    const float sum = std::fma(value(x[2 * i + 1]), value(y[2 * i + 1]), c[i]);
    return std::fma(value(x[2 * i]), value(y[2 * i]), sum);
  });
}

}  // namespace emulated

using __mmask16 = uint16_t;
#undef _mm512_fmadd_ps
#undef _mm512_fnmadd_ps
#undef _mm512_dpbusd_epi32
#undef _mm512_dpbf16_ps
#define _mm512_fmadd_ps(a, b, c) emulated::fmadd(a, b, c)
#define _mm512_fnmadd_ps(a, b, c) emulated::fnmadd(a, b, c)
#define _mm512_dpbusd_epi32(acc, a, b) emulated::dot_bytes(acc, a, b)
#define __m512bh __m512i
#define _mm512_dpbf16_ps(acc, a, b) emulated::dot_bf16(acc, a, b)
#define _mm512_maskz_loadu_ps(mask, p) emulated::maskz_loadu(mask, p)
#define _mm512_mask_storeu_ps(p, mask, a) emulated::mask_storeu(p, mask, a)
#define _mm512_cvtepi32_ps(a) emulated::int_to_float(a)
#define _mm512_srai_epi32(a, n) emulated::shift_signed(a, n)
#define _mm512_cvtepu16_epi32(a) emulated::widen<uint16_t>(a)
#define _mm512_cvtepi8_epi32(a) emulated::widen<int8_t>(a)
#define _mm512_cvtepu8_epi32(a) emulated::widen<uint8_t>(a)
#define _mm512_cvtepi32_epi16(a) emulated::narrow<__m256i, uint16_t>(a)
#define _mm512_cvtepi32_epi8(a) emulated::narrow<__m128i, uint8_t>(a)
#define _mm512_cvtph_ps(a) emulated::half_to_float(a)
#define _mm512_cvtps_ph(a, rounding) emulated::float_to_half(a)
#define _mm512_extractf32x8_ps(a, half) emulated::half_of(a, half)
#define _mm512_reduce_add_epi32(a) emulated::sum(a)
#define _mm512_reduce_max_epi32(a) emulated::largest(a)
#define _mm512_cvtss_f32(a) (emulated::f32(a)[0])
