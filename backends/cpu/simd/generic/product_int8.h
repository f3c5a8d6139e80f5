// SPDX-License-Identifier: MIT
//
// Products of block-quantised weights with int8 activations. For each block of 32, an exact integer dot product, then
//   sum = fma(float(dot), scale_w * scale_x, sum), and with a minimum sum = fma(-minimum, scale_x * sum_x, sum).
#pragma once

#include "simd/generic/int8_formats.h"
#include "simd/generic/linear.h"

namespace kvasir::cpu::KV_ISA {

template <class Format>
struct Int8Product {
  using Side = typename Format::Side;
  using Dot = typename Format::Dot;
  static constexpr uint32_t kTileRows = kInt8TileRows, kVectorRows = kInt8VectorRows;
  static constexpr uint32_t kPart = 2048, kVectorPart = 0;
  static constexpr size_t kUnitBytes = size_t{Format::kUnit.lines} * 64, kBlockBytes = size_t{Format::kBlockLines} * 64;

  // Scales of the whole part: [block][row group of the tile]. For one token they are decoded on the way.
  struct Panel {
    Side side[kPart / 32 * kTileRows];
  };

  template <int R>
  static KV_INLINE void open(const WeightTile& w, uint32_t tokens, Panel& panel) {
    if (tokens == 1) return;
    Side* side = panel.side;
    for (uint32_t k = w.k0; k < w.k1; k += Format::kUnit.width, side += Format::kUnitBlocks * R) {
      const uint8_t* unit = w.group + k / Format::kUnit.width * kUnitBytes;
      for (int r = 0; r < R; ++r) Format::sides(unit + size_t(r) * w.stride, R, side + r);
    }
  }

  // One block of 32: R row groups x T tokens.
  template <int R, int T>
  static KV_INLINE void block(const uint8_t* lines, size_t stride, OperandRows x, const Side* side,
                              F32x16 (&sum)[R][T]) {
    typename Dot::Acc acc[R][T];
    const Int8Block* xt[T];
    KV_UNROLL(4)
    for (int t = 0; t < T; ++t) {
      xt[t] = reinterpret_cast<const Int8Block*>(x.row(uint32_t(t)));
      KV_UNROLL(4)
      for (int r = 0; r < R; ++r) acc[r][t] = Dot::start(side[r], *xt[t]);
    }
    KV_UNROLL(8)
    for (int s = 0; s < Dot::kSteps; ++s) {
      typename Dot::Lines w[R];
      KV_UNROLL(4)
      for (int r = 0; r < R; ++r) w[r] = Dot::lines(lines + size_t(r) * stride, s);
      KV_UNROLL(4)
      for (int t = 0; t < T; ++t) {
        KV_UNROLL(4)
        for (int r = 0; r < R; ++r) acc[r][t] = Dot::step(acc[r][t], w[r], side[r], *xt[t], s);
      }
    }
    KV_UNROLL(4)
    for (int t = 0; t < T; ++t) {
      KV_UNROLL(4)
      for (int r = 0; r < R; ++r) {
        const F32x16 dot = to_float(Dot::finish(acc[r][t], side[r], *xt[t]));
        sum[r][t] = fma(dot, side[r].scale * broadcast(xt[t]->scale), sum[r][t]);
        if constexpr (Format::kMinimum) sum[r][t] = fnma(side[r].minimum, broadcast(xt[t]->scaled_sum), sum[r][t]);
      }
    }
  }

  template <int R, int T>
  static KV_NOINLINE void tile(const WeightTile& w, Panel& panel, OperandRows x, Accumulators sums) {
    F32x16 sum[R][T];
    load_sums(sums, sum);
    Side decoded[T == 1 ? Format::kUnitBlocks * R : 1];
    const Side* side = T == 1 ? decoded : panel.side;
    for (uint32_t k = w.k0; k < w.k1; k += Format::kUnit.width) {
      const uint8_t* unit = w.group + k / Format::kUnit.width * kUnitBytes;
      if constexpr (T == 1)
        for (int r = 0; r < R; ++r) Format::sides(unit + size_t(r) * w.stride, R, decoded + r);
      for (uint32_t b = 0; b < Format::kUnitBlocks; ++b) {
        const uint8_t* lines = unit + b * kBlockBytes;
        if constexpr (T == 1) prefetch_tile<R>(lines, w.stride, Format::kBlockLines + 1);
        block<R, T>(lines, w.stride, {x.first + (k / 32 + b) * sizeof(Int8Block), x.stride}, side + b * R, sum);
      }
      if constexpr (T > 1) side += Format::kUnitBlocks * R;
    }
    store_sums(sums, sum);
  }
};

inline void prepare_int8(const float* x, size_t x_stride, uint32_t rows, uint32_t width, char* out, size_t out_stride) {
  for (size_t r = 0; r < rows; ++r)
    make_int8_row(x + r * x_stride, width, reinterpret_cast<Int8Block*>(out + r * out_stride));
}

}  // namespace kvasir::cpu::KV_ISA
