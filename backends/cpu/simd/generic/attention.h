// SPDX-License-Identifier: MIT
//
// Attention kernels over sixteen lanes; simd/attention.h says what they compute. Included by attention.cpp of each
// instruction set inside its target region, after kWideTiles.
#pragma once

namespace kvasir::cpu::KV_ISA {

// ---- scores: positions across the lanes, dimensions in rising order ----

template <CacheType type>
KV_INLINE F32x16 load_codes(const std::byte* codes, size_t index) {
  const std::byte* p = codes + index * element_bytes(type);
  if constexpr (type == CacheType::kF32) return load(reinterpret_cast<const float*>(p));
  if constexpr (type == CacheType::kF16) return load_f16(p);
  if constexpr (type == CacheType::kBF16) return load_bf16(p);
  if constexpr (type == CacheType::kQ8_0) return load_i8(reinterpret_cast<const int8_t*>(p));
}

// Adds dimensions [d0, d1) of `blocks` adjacent blocks of 16 positions to the scores of `rows` queries. `width`:
// positions in a block; more than one block only where it is 16.
template <CacheType type, int rows, int blocks>
KV_INLINE void dot(const std::byte* codes, size_t block_stride, uint32_t width, uint32_t d0, uint32_t d1,
                   const float* q, size_t q_stride, F32x16 (&acc)[rows][blocks]) {
  for (uint32_t d = d0; d < d1; ++d) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b) {
      const F32x16 k = load_codes<type>(codes, size_t(b) * block_stride + size_t(d) * width);
      KV_UNROLL(8)
      for (int r = 0; r < rows; ++r) acc[r][b] = fma(k, broadcast(q[size_t(r) * q_stride + d]), acc[r][b]);
    }
  }
}

template <int rows, int blocks>
KV_INLINE void clear(F32x16 (&acc)[rows][blocks]) {
  KV_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b) acc[r][b] = zero();
  }
}

template <CacheType type, int rows, int blocks>
KV_INLINE void score_blocks(const SideLayout& side, const std::byte* keys, uint32_t first, const float* q,
                            size_t q_stride, F32x16 (&acc)[rows][blocks]) {
  const uint32_t width = side.key_width(first);
  const std::byte* codes = keys + size_t(first) * side.padded * element_bytes(type);
  clear(acc);
  if constexpr (type != CacheType::kQ8_0) {
    dot<type>(codes, size_t(kLanes) * side.padded, width, 0, side.dim, q, q_stride, acc);
  } else {  // the scale of 32 dimensions is applied to their sum
    const uint32_t count = side.scale_count();
    const std::byte* scales = keys + side.scales + size_t(first) * count * 2;
    for (uint32_t i = 0; i < count; ++i) {
      F32x16 part[rows][blocks];
      clear(part);
      const uint32_t end = (i + 1) * kScaleDims < side.dim ? (i + 1) * kScaleDims : side.dim;
      dot<type>(codes, size_t(kLanes) * side.padded, width, i * kScaleDims, end, q, q_stride, part);
      KV_UNROLL(8)
      for (int b = 0; b < blocks; ++b) {
        const F32x16 scale = load_f16(scales + (size_t(b) * kLanes * count + size_t(i) * width) * 2);
        KV_UNROLL(8)
        for (int r = 0; r < rows; ++r) acc[r][b] = fma(part[r][b], scale, acc[r][b]);
      }
    }
  }
}

// Stores the lanes of the block at row `first` that lie in the span.
KV_INLINE void store_scores(F32x16 a, uint32_t first, CacheSpan span, float* scores) {
  if (first >= span.first_row && first + kLanes <= span.first_row + span.count) {
    store(scores + (first - span.first_row), a);
    return;
  }
  float lanes[kLanes];
  store(lanes, a);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t row = first + i;
    if (row >= span.first_row && row - span.first_row < span.count) scores[row - span.first_row] = lanes[i];
  }
}

template <CacheType type, int rows, int blocks>
KV_INLINE void score_tile(const SideLayout& side, CacheSpan span, uint32_t first, const float* q, size_t q_stride,
                          float* scores) {
  F32x16 acc[rows][blocks];
  score_blocks<type>(side, span.data, first, q, q_stride, acc);
  KV_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b)
      store_scores(acc[r][b], first + uint32_t(b) * kLanes, span, scores + size_t(r) * kScoreStride);
  }
}

// `rows` queries against the whole span, `blocks` blocks at a time.
template <CacheType type, int rows, int blocks>
void score_rows(const SideLayout& side, CacheSpan span, const float* q, size_t q_stride, float* scores) {
  const uint32_t end = span.first_row + span.count;
  uint32_t first = span.first_row / kLanes * kLanes;
  if constexpr (blocks > 1) {
    for (; first + (blocks - 1) * kLanes < end && first + blocks * kLanes <= side.page_tokens; first += blocks * kLanes)
      score_tile<type, rows, blocks>(side, span, first, q, q_stride, scores);
  }
  for (; first < end; first += kLanes) score_tile<type, rows, 1>(side, span, first, q, q_stride, scores);
}

// Tiles of about eight vectors of sums, whatever the number of rows: enough to hide the latency of a product. Without
// kWideTiles (scalar code, where a vector is sixteen variables) one vector at a time.
template <CacheType type>
KV_INLINE void scores_of(const SideLayout& side, CacheSpan span, const float* q, size_t q_stride, uint32_t rows,
                         float* scores) {
  uint32_t r = 0;
  if constexpr (kWideTiles) {
    for (; r + 4 <= rows; r += 4)
      score_rows<type, 4, 1>(side, span, q + r * q_stride, q_stride, scores + r * kScoreStride);
    if (r + 2 <= rows) {
      score_rows<type, 2, 2>(side, span, q + r * q_stride, q_stride, scores + r * kScoreStride);
      r += 2;
    }
  }
  for (; r < rows; ++r)
    score_rows<type, 1, kWideTiles ? 4 : 1>(side, span, q + r * q_stride, q_stride, scores + r * kScoreStride);
}

inline void attention_scores(const SideLayout& side, CacheSpan span, const float* q, size_t q_stride, uint32_t rows,
                             float* scores) {
  switch (side.type) {
    case CacheType::kF32: return scores_of<CacheType::kF32>(side, span, q, q_stride, rows, scores);
    case CacheType::kF16: return scores_of<CacheType::kF16>(side, span, q, q_stride, rows, scores);
    case CacheType::kBF16: return scores_of<CacheType::kBF16>(side, span, q, q_stride, rows, scores);
    case CacheType::kQ8_0: return scores_of<CacheType::kQ8_0>(side, span, q, q_stride, rows, scores);
  }
}

// ---- softmax within a split ----

// a where the lane's position is in [lo, hi), else b.
KV_INLINE F32x16 select_positions(F32x16 position, float lo, float hi, F32x16 a, F32x16 b) {
  return select_less(position, broadcast(lo), b, select_less(position, broadcast(hi), a, b));
}

inline void attention_softmax(float* scores, uint32_t lo, uint32_t hi, float* max_out, float* sum_out) {
  static const float kFirstLanes[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const F32x16 lanes = load(kFirstLanes);
  const uint32_t begin = lo / kLanes * kLanes;
  F32x16 top = broadcast(kNoMaximum);
  for (uint32_t i = begin; i < hi; i += kLanes) {
    const F32x16 x = select_positions(lanes + broadcast(float(i)), float(lo), float(hi), load(scores + i), top);
    top = max(x, top);  // a NaN does not count here; it comes back through its exponential
  }
  const float highest = max_lanes(top);
  const F32x16 shift = broadcast(highest);
  F32x16 sum = zero();
  for (uint32_t i = begin; i < hi; i += kLanes) {
    const F32x16 p = exp(load(scores + i) - shift);
    const F32x16 kept = select_positions(lanes + broadcast(float(i)), float(lo), float(hi), p, zero());
    store(scores + i, kept);
    sum = sum + kept;
  }
  *max_out = highest;
  *sum_out = sum_lanes(sum);
}

// ---- values: dimensions across the lanes, positions in rising order ----

// Dimensions [16 first, 16 (first + blocks)) of `rows` rows. weights: rows of `stride`.
template <CacheType type, int rows, int blocks>
KV_INLINE void value_tile(const SideLayout& side, CacheSpan span, uint32_t first, const float* weights, size_t stride,
                          float* out, size_t out_stride) {
  F32x16 acc[rows][blocks];
  KV_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b) acc[r][b] = load(out + size_t(r) * out_stride + (first + uint32_t(b)) * kLanes);
  }
  const size_t start = side.value_index(span.first_row, first * kLanes);
  const size_t block_stride = size_t(side.page_tokens) * kLanes;
  for (uint32_t i = 0; i < span.count; ++i) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b) {
      const F32x16 v = load_codes<type>(span.data, start + size_t(b) * block_stride + size_t(i) * kLanes);
      KV_UNROLL(8)
      for (int r = 0; r < rows; ++r) acc[r][b] = fma(v, broadcast(weights[size_t(r) * stride + i]), acc[r][b]);
    }
  }
  KV_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    KV_UNROLL(8)
    for (int b = 0; b < blocks; ++b) store(out + size_t(r) * out_stride + (first + uint32_t(b)) * kLanes, acc[r][b]);
  }
}

// q8_0: the scale of 32 dimensions goes into the weights first.
template <int rows>
KV_INLINE void scaled_weights(const SideLayout& side, CacheSpan span, uint32_t block, const float* weights,
                              float (&scaled)[rows][kScoreStride]) {
  const std::byte* scales = span.data + side.scales + side.value_scale_index(span.first_row, block) * 2;
  for (uint32_t i = 0; i < span.count; i += kLanes) {
    const F32x16 scale = load_f16(scales + size_t(i) * 2);
    KV_UNROLL(8)
    for (int r = 0; r < rows; ++r) store(scaled[r] + i, load(weights + size_t(r) * kScoreStride + i) * scale);
  }
}

// All dimensions of `rows` rows, `blocks` blocks of 16 at a time.
template <CacheType type, int rows, int blocks>
void value_rows(const SideLayout& side, CacheSpan span, const float* weights, float* out, size_t out_stride) {
  const uint32_t count = side.padded / kLanes;
  uint32_t first = 0;
  if constexpr (type == CacheType::kQ8_0) {
    constexpr int pair = blocks < 2 ? 1 : 2;
    float scaled[rows][kScoreStride];
    for (uint32_t block = 0; block < side.scale_count(); ++block) {
      scaled_weights<rows>(side, span, block, weights, scaled);
      for (uint32_t b = 0; b < 2; b += pair)
        value_tile<type, rows, pair>(side, span, block * 2 + b, scaled[0], kScoreStride, out, out_stride);
    }
  } else {
    for (; blocks > 1 && first + blocks <= count; first += blocks)
      value_tile<type, rows, blocks>(side, span, first, weights, kScoreStride, out, out_stride);
    for (; first < count; ++first) value_tile<type, rows, 1>(side, span, first, weights, kScoreStride, out, out_stride);
  }
}

template <CacheType type>
KV_INLINE void values_of(const SideLayout& side, CacheSpan span, const float* weights, uint32_t rows, float* out,
                         size_t out_stride) {
  uint32_t r = 0;
  if constexpr (kWideTiles) {
    for (; r + 4 <= rows; r += 4)
      value_rows<type, 4, 1>(side, span, weights + r * kScoreStride, out + r * out_stride, out_stride);
    if (r + 2 <= rows) {
      value_rows<type, 2, 2>(side, span, weights + r * kScoreStride, out + r * out_stride, out_stride);
      r += 2;
    }
  }
  for (; r < rows; ++r)
    value_rows<type, 1, kWideTiles ? 4 : 1>(side, span, weights + r * kScoreStride, out + r * out_stride, out_stride);
}

inline void attention_values(const SideLayout& side, CacheSpan span, const float* weights, uint32_t rows, float* out,
                             size_t out_stride) {
  switch (side.type) {
    case CacheType::kF32: return values_of<CacheType::kF32>(side, span, weights, rows, out, out_stride);
    case CacheType::kF16: return values_of<CacheType::kF16>(side, span, weights, rows, out, out_stride);
    case CacheType::kBF16: return values_of<CacheType::kBF16>(side, span, weights, rows, out, out_stride);
    case CacheType::kQ8_0: return values_of<CacheType::kQ8_0>(side, span, weights, rows, out, out_stride);
  }
}

// ---- joining splits ----

inline void attention_join(float max, float sum, const float* part, uint32_t n, float* running_max, float* running_sum,
                           float* out) {
  const float highest = *running_max > max ? *running_max : max;
  const F32x16 before = exp(broadcast(*running_max - highest));
  const F32x16 now = exp(broadcast(max - highest));
  const F32x16 total = fma(broadcast(sum), now, broadcast(*running_sum) * before);
  *running_max = highest;
  *running_sum = first_lane(total);
  for (uint32_t i = 0; i < n; i += kLanes) store(out + i, fma(load(part + i), now, load(out + i) * before));
}

inline void attention_finish(const float* out, float sum, uint32_t n, float* y) {
  const F32x16 divisor = broadcast(sum);
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(out + i) / divisor);
  if (i < n) store_first(y + i, load_first(out + i, n - i) / divisor, n - i);
}

}  // namespace kvasir::cpu::KV_ISA
