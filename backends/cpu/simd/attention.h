// SPDX-License-Identifier: MIT
//
// The kernels of attention and of the cache as one table of functions per instruction set. As in kernels.h: plain
// pointers and sizes, the same bits in every table, FloatState set by the caller.
//
// Attention is cut at absolute positions into splits of kSplit. Within a split a row (one query head of one token) has
// its scores, their maximum, the exponentials, their sum, and the sum of the values in the order of positions; splits
// are joined in the order of positions. No step depends on the other rows of a call or on where pages begin, so decode
// and prefill, any batch and any page size give the same bits. Positions outside a row's range are never added, not
// even as 0 x value: what is in their cells cannot reach a result.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "simd/kernels.h"
#include "simd/page_layout.h"

namespace kvasir::cpu {

constexpr uint32_t kSplit = 256;                  // positions
constexpr size_t kScoreStride = kSplit + kLanes;  // floats of a row of scores; the tail may be read and written
constexpr float kNoMaximum = -FLT_MAX;  // the running maximum before the first position: finite, no NaN follows

// Cache rows [first_row, first_row + count) of one head in one page, at most kSplit.
struct CacheSpan {
  const std::byte* data;  // the head's keys or values in the page
  uint32_t first_row;
  uint32_t count;
};

struct AttentionKernels {
  const char* name;

  // One head of a row to the cache's form: x [dim] to codes [padded] and, for q8_0, scales [padded / 32] (f16 bits).
  // Elements from dim to padded count as 0. codes must hold padded elements rounded up to 16.
  void (*encode)(CacheType type, const float* x, uint32_t dim, uint32_t padded, void* codes, uint16_t* scales);

  // scores[r][i] = q[r] . key of row first_row + i, for r < rows and i < count. Writes no other score.
  void (*scores)(const SideLayout& side, CacheSpan span, const float* q, size_t q_stride, uint32_t rows, float* scores);

  // scores [kSplit] becomes exp(score - max) for positions [lo, hi) and 0 in the rest of the 16s they touch.
  void (*softmax)(float* scores, uint32_t lo, uint32_t hi, float* max, float* sum);

  // out[r] += sum over i of weights[r][i] * value of row first_row + i, in rising order of i. out: rows of out_stride.
  // Rows of weights are kScoreStride apart; 16 floats beyond `count` may be read.
  void (*values)(const SideLayout& side, CacheSpan span, const float* weights, uint32_t rows, float* out,
                 size_t out_stride);

  // The next split (max, sum, part [n]) of a row joins those before it (*running_max, *running_sum, out [n]).
  // n is a multiple of 16.
  void (*join)(float max, float sum, const float* part, uint32_t n, float* running_max, float* running_sum, float* out);

  // y [n] = out / sum.
  void (*finish)(const float* out, float sum, uint32_t n, float* y);
};

// The table that goes with `kernels` (same instruction set).
const AttentionKernels& find_attention_kernels(const Kernels& kernels);

namespace scalar {
extern const AttentionKernels kAttentionKernels;
}
namespace avx2 {
extern const AttentionKernels kAttentionKernels;
}
namespace avx512 {
extern const AttentionKernels kAttentionKernels;
}

}  // namespace kvasir::cpu
