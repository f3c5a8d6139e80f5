// SPDX-License-Identifier: MIT
//
// Products in f32: sum = fma(w, x, sum) for one element after another. FloatProduct takes F32, F16 and BF16 weights,
// which are widened as they are loaded; PanelProduct dequantises block types into a panel first.
#pragma once

#include "simd/generic/int8_formats.h"
#include "simd/generic/linear.h"

namespace kvasir::cpu::KV_ISA {

// One line of weights: kStep elements of 16 rows, in the order in which they are added; kFirst is the place of the
// first of them, the others follow in steps of kNext.
struct LoadF32 {
  static constexpr int kStep = 1, kFirst = 0, kNext = 1;
  static KV_INLINE void line(const uint8_t* p, F32x16 (&w)[1]) { w[0] = as_float(load_i32(p)); }
};
struct LoadF16 {
  static constexpr int kStep = 2, kFirst = 0, kNext = 1;
  static KV_INLINE void line(const uint8_t* p, F32x16 (&w)[2]) { w[0] = load_f16(p), w[1] = load_f16(p + 32); }
};
struct LoadBF16 {
  static constexpr int kStep = 2, kFirst = 0, kNext = 1;
  static KV_INLINE void line(const uint8_t* p, F32x16 (&w)[2]) {
    const I32x16 pair = load_i32(p);
    w[0] = as_float(shift_left(pair, 16)), w[1] = as_float(pair & broadcast_i32(-0x10000));
  }
};
// The order of vdpbf16ps: the odd element first. The operand is padded to pairs.
struct LoadBF16Pairs {
  static constexpr int kStep = 2, kFirst = 1, kNext = -1;
  static KV_INLINE void line(const uint8_t* p, F32x16 (&w)[2]) {
    const I32x16 pair = load_i32(p);
    w[0] = as_float(pair & broadcast_i32(-0x10000)), w[1] = as_float(shift_left(pair, 16));
  }
};

// Adds lines [first, last) to R row groups x T tokens. x points at the element of line 0.
template <class Load, int R, int T>
KV_INLINE void add_lines(const WeightTile& w, OperandRows x, uint32_t first, uint32_t last, F32x16 (&sum)[R][T]) {
  KV_UNROLL(4)
  for (uint32_t l = first; l < last; ++l) {
    F32x16 line[R][Load::kStep];
    const uint8_t* p = w.group + size_t{l} * 64;
    if constexpr (T == 1) prefetch_tile<R>(p, w.stride, 1);
    KV_UNROLL(4)
    for (int r = 0; r < R; ++r) Load::line(p + size_t(r) * w.stride, line[r]);
    KV_UNROLL(2)
    for (int i = 0; i < Load::kStep; ++i) {
      const size_t k = size_t{l} * Load::kStep + size_t(Load::kFirst + i * Load::kNext);
      KV_UNROLL(4)
      for (int t = 0; t < T; ++t) {
        const F32x16 value = broadcast(reinterpret_cast<const float*>(x.row(uint32_t(t)))[k]);
        KV_UNROLL(4)
        for (int r = 0; r < R; ++r) sum[r][t] = fma(line[r][i], value, sum[r][t]);
      }
    }
  }
}

template <class Load>
struct FloatProduct {
  static constexpr uint32_t kTileRows = kFloatTileRows, kVectorRows = kFloatVectorRows;
  static constexpr uint32_t kPart = 512, kVectorPart = 0;
  struct Panel {};
  template <int R>
  static KV_INLINE void open(const WeightTile&, uint32_t, Panel&) {}

  template <int R, int T>
  static KV_NOINLINE void tile(const WeightTile& w, Panel&, OperandRows x, Accumulators sums) {
    constexpr uint32_t kStep = uint32_t(Load::kStep);
    F32x16 sum[R][T];
    load_sums(sums, sum);
    // A pair that the width cuts in half is added whole where the operand is padded, and without its odd element else.
    const uint32_t last = Load::kFirst == 0 ? w.k1 / kStep : (w.k1 + kStep - 1) / kStep;
    add_lines<Load>(w, x, w.k0 / kStep, last, sum);
    if (last * kStep < w.k1) {
      KV_UNROLL(4)
      for (int r = 0; r < R; ++r) {
        F32x16 line[Load::kStep];
        Load::line(w.group + size_t(r) * w.stride + size_t{last} * 64, line);
        KV_UNROLL(4)
        for (int t = 0; t < T; ++t) {
          const float* xt = reinterpret_cast<const float*>(x.row(uint32_t(t)));
          sum[r][t] = fma(line[0], broadcast(xt[w.k1 - 1]), sum[r][t]);
        }
      }
    }
    store_sums(sums, sum);
  }
};

template <class Format>
struct PanelProduct {
  using Side = typename Format::Side;
  static constexpr uint32_t kTileRows = kFloatTileRows, kVectorRows = 2;
  static constexpr uint32_t kPart = 256, kVectorPart = 256;
  static constexpr size_t kRowBytes = size_t{kPart} * 64;
  struct Panel {
    alignas(64) float value[2][kPart][kGroupRows];
  };
  static_assert(kTileRows <= 2);

  template <int R>
  static void open(const WeightTile& w, uint32_t, Panel& panel) {
    constexpr size_t kUnitBytes = size_t{Format::kUnit.lines} * 64, kBlockBytes = size_t{Format::kBlockLines} * 64;
    for (int r = 0; r < R; ++r) {
      float* out = panel.value[r][0];
      for (uint32_t k = w.k0; k < w.k1; k += Format::kUnit.width) {
        const uint8_t* unit = w.group + size_t(r) * w.stride + k / Format::kUnit.width * kUnitBytes;
        Side side[Format::kUnitBlocks];
        Format::sides(unit, 1, side);
        for (uint32_t b = 0; b < Format::kUnitBlocks; ++b, out += 32 * kGroupRows) {
          prefetch_tile<1>(unit + b * kBlockBytes, 0, Format::kBlockLines + 1);
          KV_UNROLL(32)
          for (int i = 0; i < 32; ++i) store(out + i * 16, Format::value(unit + b * kBlockBytes, i, side[b]));
        }
      }
    }
  }

  template <int R, int T>
  static KV_NOINLINE void tile(const WeightTile& w, Panel& panel, OperandRows x, Accumulators sums) {
    F32x16 sum[R][T];
    load_sums(sums, sum);
    const WeightTile values = {reinterpret_cast<const uint8_t*>(panel.value), kRowBytes, 0, w.k1 - w.k0};
    add_lines<LoadF32>(values, {x.first + size_t{w.k0} * sizeof(float), x.stride}, 0, values.k1, sum);
    store_sums(sums, sum);
  }
};

// Rows rounded to bf16, kept as f32 and filled up with zeros to whole vectors.
inline void prepare_bf16_as_f32(const float* x, size_t x_stride, uint32_t rows, uint32_t width, char* out,
                                size_t out_stride) {
  for (size_t r = 0; r < rows; ++r) {
    float* row = reinterpret_cast<float*>(out + r * out_stride);
    for (uint32_t k = 0; k < width; k += 16)
      store(row + k, as_float(shift_left(bf16_bits(load_first(x + r * x_stride + k, width - k)), 16)));
  }
}

}  // namespace kvasir::cpu::KV_ISA
