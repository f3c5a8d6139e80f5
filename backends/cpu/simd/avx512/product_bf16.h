// SPDX-License-Identifier: MIT
//
// Products of bf16 weights with activations rounded to bf16, where the processor has vdpbf16ps. Lane by lane that is
// sum = fma(odd, odd, sum), then sum = fma(even, even, sum), denormals taken as zero: what FloatProduct<LoadBF16Pairs>
// does everywhere else. Everything that is not a bf16 operand goes the way of the avx512 table.
#pragma once

#include "simd/generic/table.h"

namespace kvasir::cpu::KV_ISA {

KV_INLINE F32x16 dot_bf16(F32x16 sum, I32x16 a, I32x16 b) {
  return {_mm512_dpbf16_ps(sum.v, (__m512bh)a.v, (__m512bh)b.v)};
}

struct Bf16Product {
  static constexpr uint32_t kTileRows = 2, kVectorRows = 4;
  static constexpr uint32_t kPart = 1024, kVectorPart = 0;
  struct Panel {};
  template <int R>
  static void open(const WeightTile&, uint32_t, Panel&) {}

  template <int R, int T>
  static KV_NOINLINE void tile(const WeightTile& w, Panel&, OperandRows x, Accumulators sums) {
    F32x16 sum[R][T];
    load_sums(sums, sum);
    KV_UNROLL(4)
    for (uint32_t l = w.k0 / 2; l < (w.k1 + 1) / 2; ++l) {
      const uint8_t* p = w.group + size_t{l} * 64;
      if constexpr (T == 1) prefetch_tile<R>(p, w.stride, 1);
      I32x16 line[R];
      KV_UNROLL(4)
      for (int r = 0; r < R; ++r) line[r] = load_i32(p + size_t(r) * w.stride);
      KV_UNROLL(4)
      for (int t = 0; t < T; ++t) {
        int32_t pair;
        std::memcpy(&pair, x.row(uint32_t(t)) + size_t{l} * 4, 4);
        KV_UNROLL(4)
        for (int r = 0; r < R; ++r) sum[r][t] = dot_bf16(sum[r][t], line[r], broadcast_i32(pair));
      }
    }
    store_sums(sums, sum);
  }
};

inline void linear_with_bf16(const LinearArgs& args, uint32_t g0, uint32_t g1) {
  if (args.operand == OperandType::kBF16) return run_linear<Bf16Product>(args, g0, g1);
  linear(args, g0, g1);
}

// Rows rounded to bf16, filled up with zeros to 16 elements.
inline void prepare_bf16(const float* x, size_t x_stride, uint32_t rows, uint32_t width, char* out, size_t out_stride) {
  for (size_t r = 0; r < rows; ++r)
    for (uint32_t k = 0; k < width; k += 16)
      store_low16(out + r * out_stride + size_t{k} * 2, bf16_bits(load_first(x + r * x_stride + k, width - k)));
}

inline void prepare_with_bf16(OperandType type, const float* x, size_t x_stride, uint32_t rows, uint32_t width,
                              void* out, size_t out_stride_bytes) {
  if (type == OperandType::kBF16)
    return prepare_bf16(x, x_stride, rows, width, static_cast<char*>(out), out_stride_bytes);
  prepare(type, x, x_stride, rows, width, out, out_stride_bytes);
}

}  // namespace kvasir::cpu::KV_ISA
