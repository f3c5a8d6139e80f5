// SPDX-License-Identifier: MIT
//
// How a matrix product is cut: row groups, tokens and parts of the width that fit the caches. What happens inside a tile
// is the business of a Product (product_int8.h, product_f32.h, product_bf16.h):
//   kTileRows, kVectorRows  row groups of a tile, for several tokens and for one
//   kPart, kVectorPart      elements of the width in one pass over a tile (0: all of it)
//   Panel                   what is decoded once for all tokens of a row tile
//   open<R>(...), tile<R, T>(...)
// An output is one sequence of operations over the width, in rising order, in a single accumulator; how the work is cut
// decides only when they happen. Between parts of the width the accumulators wait in memory as the f32 they are.
#pragma once

#include "simd/prelude.h"

namespace kvasir::cpu::KV_ISA {

constexpr uint32_t kBlockGroups = 8;   // row groups whose part of the width stays in the L2 cache ...
constexpr uint32_t kBlockTokens = 64;  // ... while this many tokens pass
constexpr uint32_t kTileTokens = 4;

// R row groups of a weight and a part [k0, k1) of its width.
struct WeightTile {
  const uint8_t* group;  // the first row group, from element 0
  size_t stride;         // bytes from one row group to the next
  uint32_t k0, k1;
};

// The rows of some tokens, from element 0 of the first.
struct OperandRows {
  const char* first;
  size_t stride;
  KV_INLINE const char* row(uint32_t t) const { return first + t * stride; }
};

// Sums of a tile: [tokens][stride].
struct Accumulators {
  float* first;
  size_t stride;
};

template <int R, int T>
KV_INLINE void load_sums(Accumulators sums, F32x16 (&sum)[R][T]) {
  KV_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    KV_UNROLL(4)
    for (int t = 0; t < T; ++t) sum[r][t] = load(sums.first + size_t(t) * sums.stride + r * 16);
  }
}
template <int R, int T>
KV_INLINE void store_sums(Accumulators sums, F32x16 (&sum)[R][T]) {
  KV_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    KV_UNROLL(4)
    for (int t = 0; t < T; ++t) store(sums.first + size_t(t) * sums.stride + r * 16, sum[r][t]);
  }
}

// Fetches what a linear stream reads 4 KiB later. Addresses behind the end are harmless: nothing is read there.
template <int R>
KV_INLINE void prefetch_tile(const uint8_t* p, size_t stride, uint32_t lines) {
  KV_UNROLL(4)
  for (int r = 0; r < R; ++r) {
    const uintptr_t ahead = reinterpret_cast<uintptr_t>(p) + size_t(r) * stride + 4096;
    KV_UNROLL(16)
    for (uint32_t l = 0; l < lines; ++l) prefetch(reinterpret_cast<const void*>(ahead + l * 64));
  }
}

// One row tile for any number of tokens.
template <class Product, int R>
inline void run_tokens(const LinearArgs& args, const WeightTile& w, typename Product::Panel& panel, uint32_t t0,
                       uint32_t tokens, Accumulators sums) {
  const OperandRows x = {static_cast<const char*>(args.x) + t0 * args.x_stride_bytes, args.x_stride_bytes};
  uint32_t t = 0;
  for (; t + kTileTokens <= tokens; t += kTileTokens)
    Product::template tile<R, int(kTileTokens)>(w, panel, {x.row(t), x.stride},
                                                {sums.first + t * sums.stride, sums.stride});
  if (tokens - t >= 2) {
    Product::template tile<R, 2>(w, panel, {x.row(t), x.stride}, {sums.first + t * sums.stride, sums.stride});
    t += 2;
  }
  if (t < tokens)
    Product::template tile<R, 1>(w, panel, {x.row(t), x.stride}, {sums.first + t * sums.stride, sums.stride});
}

// Row groups [group, group + groups) by tiles of R; a shorter rest one by one.
template <class Product, int R>
inline void run_part(const LinearArgs& args, uint32_t group, uint32_t groups, uint32_t k0, uint32_t k1, uint32_t t0,
                     uint32_t tokens, Accumulators sums) {
  const size_t stride = group_bytes(args.type, args.width);
  const uint8_t* weight = static_cast<const uint8_t*>(args.weight) + group * stride;
  typename Product::Panel panel;
  uint32_t g = 0;
  for (; g + R <= groups; g += R) {
    const WeightTile w = {weight + g * stride, stride, k0, k1};
    Product::template open<R>(w, tokens, panel);
    run_tokens<Product, R>(args, w, panel, t0, tokens, {sums.first + g * kGroupRows, sums.stride});
  }
  if constexpr (R > 1)
    for (; g < groups; ++g) {
      const WeightTile w = {weight + g * stride, stride, k0, k1};
      Product::template open<1>(w, tokens, panel);
      run_tokens<Product, 1>(args, w, panel, t0, tokens, {sums.first + g * kGroupRows, sums.stride});
    }
}

// From sums to y: bias, residual, and only the rows of the view.
inline void finish_rows(const LinearArgs& args, uint32_t group, uint32_t groups, uint32_t t0, uint32_t tokens,
                        Accumulators sums) {
  const uint32_t begin = group * kGroupRows, end = begin + groups * kGroupRows;  // rows of the matrix in `sums`
  const uint32_t view_end = args.first_row + args.rows;
  const uint32_t first = begin > args.first_row ? begin : args.first_row, last = end < view_end ? end : view_end;
  const uint32_t offset = first - args.first_row;
  for (uint32_t t = 0; t < tokens; ++t) {
    const float* sum = sums.first + t * sums.stride + (first - begin);
    float* y = args.y + (t0 + t) * args.y_stride + offset;
    const float* residual = args.residual ? args.residual + (t0 + t) * args.residual_stride + offset : nullptr;
    for (uint32_t r = 0; r < last - first; r += 16) {
      const uint32_t n = last - first - r;
      F32x16 value = load_first(sum + r, n);
      if (args.bias) value = value + load_first(args.bias + offset + r, n);
      if (residual) value = value + load_first(residual + r, n);
      store_first(y + r, value, n);
    }
  }
}

// Row groups [group, group + groups), tokens [t0, t0 + tokens): all of the width. R: row groups of a tile.
template <class Product, int R>
inline void run_block(const LinearArgs& args, uint32_t part, uint32_t group, uint32_t groups, uint32_t t0,
                      uint32_t tokens) {
  alignas(64) float memory[kBlockTokens * kBlockGroups * kGroupRows];
  const Accumulators sums = {memory, groups * kGroupRows};
  std::memset(memory, 0, tokens * sums.stride * sizeof(float));
  const uint32_t step = part == 0 ? args.width : part;
  for (uint32_t k0 = 0; k0 < args.width; k0 += step) {
    const uint32_t k1 = args.width - k0 > step ? k0 + step : args.width;
    run_part<Product, R>(args, group, groups, k0, k1, t0, tokens, sums);
  }
  finish_rows(args, group, groups, t0, tokens, sums);
}

template <class Product>
inline void run_linear(const LinearArgs& args, uint32_t g0, uint32_t g1) {
  const uint32_t base = args.first_row / kGroupRows;
  if (args.tokens == 1) {
    constexpr uint32_t kRows = Product::kVectorRows;
    for (uint32_t g = g0; g < g1; g += kRows)
      run_block<Product, int(kRows)>(args, Product::kVectorPart, base + g, g1 - g < kRows ? g1 - g : kRows, 0, 1);
    return;
  }
  for (uint32_t g = g0; g < g1; g += kBlockGroups) {
    const uint32_t groups = g1 - g < kBlockGroups ? g1 - g : kBlockGroups;
    for (uint32_t t = 0; t < args.tokens; t += kBlockTokens) {
      const uint32_t tokens = args.tokens - t < kBlockTokens ? args.tokens - t : kBlockTokens;
      run_block<Product, int(Product::kTileRows)>(args, Product::kPart, base + g, groups, t, tokens);
    }
  }
}

}  // namespace kvasir::cpu::KV_ISA
