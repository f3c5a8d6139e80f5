// SPDX-License-Identifier: MIT
//
// exp, exp2 and the activations over sixteen lanes: the same operations in the same order for every instruction set.
// Errors (measured over the whole range by tests/cpu_kernels/math_test.cpp) stand at each function; results below the
// smallest normal number are zero. They need FTZ and DAZ set, as all kernels do.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

// Adding this rounds a number below 2^22 to an integer, which then stands in the low bits.
constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23
constexpr int32_t kRoundMagicBits = 0x4b400000;

// bf16 in the low halves of the lanes, to nearest even; NaN stays NaN, made quiet.
KV_INLINE I32x16 bf16_bits(F32x16 a) {
  const I32x16 bits = as_int(a), upper = shift_right(bits, 16);
  const F32x16 rounded = as_float(shift_right(bits + broadcast_i32(0x7fff) + (upper & broadcast_i32(1)), 16));
  const F32x16 quiet = as_float(upper | broadcast_i32(0x40)), infinity = broadcast(__builtin_inff());
  return as_int(select_less(abs(a), infinity, rounded, select_less(zero(), abs(a), as_float(upper), quiet)));
}

// p * 2^n for n in [-254, 254]: two steps, so that neither factor leaves the range of normal numbers.
KV_INLINE F32x16 scale_by_power(F32x16 p, I32x16 n) {
  const I32x16 half = shift_right_signed(n, 1), one = broadcast_i32(127);
  return p * as_float(shift_left(half + one, 23)) * as_float(shift_left(n - half + one, 23));
}

// 2^x, relative error below 1e-7. Zero below -126, infinity from 128, NaN for NaN.
KV_INLINE F32x16 exp2(F32x16 x) {
  x = min(broadcast(129.0f), max(broadcast(-128.0f), x));
  const F32x16 rounded = x + broadcast(kRoundMagic);
  const F32x16 f = x - (rounded - broadcast(kRoundMagic));  // [-0.5, 0.5]
  F32x16 p = broadcast(1.5353345952462405e-4f);
  p = fma(p, f, broadcast(1.3398900628089905e-3f));
  p = fma(p, f, broadcast(9.618437848985195e-3f));
  p = fma(p, f, broadcast(5.5503323674201965e-2f));
  p = fma(p, f, broadcast(0.24022647738456726f));
  p = fma(p, f, broadcast(0.6931471824645996f));
  p = fma(p, f, broadcast(1.0f));
  return scale_by_power(p, as_int(rounded) - broadcast_i32(kRoundMagicBits));
}

// e^x, relative error below 1e-7. Zero below -87.34, infinity above 88.73, NaN for NaN.
KV_INLINE F32x16 exp(F32x16 x) {
  x = min(broadcast(89.0f), max(broadcast(-88.5f), x));
  const F32x16 rounded = fma(x, broadcast(1.44269504f), broadcast(kRoundMagic));
  const F32x16 n = rounded - broadcast(kRoundMagic);
  F32x16 r = fnma(n, broadcast(0.693145751953125f), x);  // ln 2 in two parts, the first with few bits
  r = fnma(n, broadcast(1.42860677e-6f), r);
  F32x16 p = broadcast(1.381446374580264e-3f);
  p = fma(p, r, broadcast(8.368780836462975e-3f));
  p = fma(p, r, broadcast(4.166839271783829e-2f));
  p = fma(p, r, broadcast(0.1666651964187622f));
  p = fma(p, r, broadcast(0.4999999403953552f));
  p = fma(p, r * r, r) + broadcast(1.0f);
  return scale_by_power(p, as_int(rounded) - broadcast_i32(kRoundMagicBits));
}

// ---- activations: error relative to max(1, |x|) below 2e-7 ----

// x / (1 + e^-x)
KV_INLINE F32x16 silu(F32x16 x) { return x / (broadcast(1.0f) + exp(zero() - x)); }

// x Phi(x). With a = |x|, Phi(-a) = e^(-a^2 / 2) g(1 / (1 + 0.35 a)), g a polynomial of relative error 3e-7.
KV_INLINE F32x16 gelu(F32x16 x) {
  const F32x16 a = abs(x), one = broadcast(1.0f);
  const F32x16 t = one / fma(a, broadcast(0.35f), one);
  F32x16 g = broadcast(4.89424392580986e-2f);
  g = fma(g, t, broadcast(-0.20211924612522125f));
  g = fma(g, t, broadcast(0.2406407594680786f));
  g = fma(g, t, broadcast(-1.702338084578514e-2f));
  g = fma(g, t, broadcast(0.15596145391464233f));
  g = fma(g, t, broadcast(0.13335511088371277f));
  g = fma(g, t, broadcast(0.14027033746242523f));
  g = fma(g, t, broadcast(-2.731547829171177e-5f));
  const F32x16 tail = g * exp(a * a * broadcast(-0.5f));
  return x * select_less(x, zero(), tail, one - tail);
}

// x / 2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
KV_INLINE F32x16 gelu_tanh(F32x16 x) {
  const F32x16 cubic = fma(x * x, broadcast(0.044715f), broadcast(1.0f));
  return x / (broadcast(1.0f) + exp(x * cubic * broadcast(-1.5957691216057308f)));
}

// max(x, 0); NaN for NaN. The sum makes zeros of denormals, which max leaves open.
KV_INLINE F32x16 relu(F32x16 x) { return max(zero(), x) + zero(); }

template <Activation act>
KV_INLINE F32x16 apply(F32x16 x) {
  if constexpr (act == Activation::kSilu)
    return silu(x);
  else if constexpr (act == Activation::kGelu)
    return gelu(x);
  else if constexpr (act == Activation::kGeluTanh)
    return gelu_tanh(x);
  else
    return relu(x);
}

}  // namespace kvasir::cpu::KV_ISA
