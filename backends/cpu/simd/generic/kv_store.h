// SPDX-License-Identifier: MIT
//
// Rounding a row of keys or values to the cache's type. Included by attention.cpp of each instruction set inside its
// target region.
#pragma once

namespace kvasir::cpu::KV_ISA {

// Elements [i, i + 16) of x [dim]; those beyond the end are 0.
KV_INLINE F32x16 load_row(const float* x, uint32_t i, uint32_t dim) {
  if (i + kLanes <= dim) return load(x + i);
  return i < dim ? load_first(x + i, dim - i) : zero();
}

// f32 to bf16 in the low halves of the lanes: to nearest even; NaN stays NaN, made quiet.
KV_INLINE I32x16 round_to_bf16(F32x16 a) {
  const I32x16 bits = as_int(a);
  const I32x16 upper = shift_right<16>(bits);
  const I32x16 rounded = shift_right<16>(bits + broadcast_i32(0x7fff) + (upper & broadcast_i32(1)));
  const F32x16 number = as_float(rounded), quiet = as_float(upper | broadcast_i32(0x40));
  return as_int(select_less(a, zero(), number, select_less(broadcast(-1.0f), a, number, quiet)));
}

KV_INLINE void encode_f32(const float* x, uint32_t dim, uint32_t padded, float* codes) {
  for (uint32_t i = 0; i < padded; i += kLanes) store(codes + i, load_row(x, i, dim));
}

KV_INLINE void encode_f16(const float* x, uint32_t dim, uint32_t padded, uint16_t* codes) {
  for (uint32_t i = 0; i < padded; i += kLanes) store_f16(codes + i, load_row(x, i, dim));
}

KV_INLINE void encode_bf16(const float* x, uint32_t dim, uint32_t padded, uint16_t* codes) {
  for (uint32_t i = 0; i < padded; i += kLanes) store_low16(codes + i, round_to_bf16(load_row(x, i, dim)));
}

// One block of 32 as backends/ref/quantize.cpp defines it.
KV_INLINE uint16_t encode_block(F32x16 a, F32x16 b, int8_t* codes) {
  constexpr uint16_t kHalfNan = 0x7e00, kHalfInfinity = 0x7c00, kHalfMax = 0x7bff;
  const float broken = sum_lanes(a * zero() + b * zero());  // NaN where an element is NaN or infinite
  const float largest = broken == 0.0f ? max_lanes(max(abs(a), abs(b))) : 0.0f;
  uint16_t scale = broken == 0.0f ? sdk::f16_from_f32(largest / 127.0f) : kHalfNan;
  float factor = 0.0f;
  if (scale == kHalfInfinity) {
    scale = kHalfMax;
    factor = 1.0f / sdk::f32_from_f16(kHalfMax);
  } else if (scale != 0 && scale != kHalfNan) {
    factor = 127.0f / largest;
  }
  if (factor == 0.0f) {
    std::memset(codes, 0, kScaleDims);
    return scale;
  }
  const F32x16 low = broadcast(-127.0f), high = broadcast(127.0f), magic = broadcast(kRoundMagic);
  const I32x16 bits = broadcast_i32(kRoundMagicBits);
  store_low8(codes, as_int(min(high, max(low, a * broadcast(factor))) + magic) - bits);
  store_low8(codes + kLanes, as_int(min(high, max(low, b * broadcast(factor))) + magic) - bits);
  return scale;
}

KV_INLINE void encode_q8_0(const float* x, uint32_t dim, uint32_t padded, int8_t* codes, uint16_t* scales) {
  for (uint32_t i = 0; i < padded; i += kScaleDims)
    scales[i / kScaleDims] = encode_block(load_row(x, i, dim), load_row(x, i + kLanes, dim), codes + i);
}

inline void cache_encode(CacheType type, const float* x, uint32_t dim, uint32_t padded, void* codes, uint16_t* scales) {
  switch (type) {
    case CacheType::kF32: return encode_f32(x, dim, padded, static_cast<float*>(codes));
    case CacheType::kF16: return encode_f16(x, dim, padded, static_cast<uint16_t*>(codes));
    case CacheType::kBF16: return encode_bf16(x, dim, padded, static_cast<uint16_t*>(codes));
    case CacheType::kQ8_0: return encode_q8_0(x, dim, padded, static_cast<int8_t*>(codes), scales);
  }
}

}  // namespace kvasir::cpu::KV_ISA
