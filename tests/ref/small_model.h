// SPDX-License-Identifier: MIT
//
// A small transformer with random weights as a program: two layers in two cache groups, grouped heads, per-head norms,
// rotary positions, a window in the second layer. For tests of whole programs.
#pragma once

#include <random>
#include <vector>

#include "support/backend_harness.h"

namespace kvasir::testing {

struct SmallModel {
  static constexpr uint32_t kDim = 8, kHeads = 4, kKvHeads = 2, kHeadDim = 6, kFfn = 12, kVocab = 11, kLayers = 2;

  // Both groups store `cache_type`; pages of `page_tokens`; the second layer sees `window` positions.
  static CacheSpec cache(uint32_t cache_type, uint32_t page_tokens, uint32_t window = 5) {
    const kvb_cache_group full{cache_type, cache_type, kKvHeads, kHeadDim, kHeadDim, 0, page_tokens, 0};
    kvb_cache_group windowed = full;
    windowed.window = window;
    return {{full, windowed}, {0, 1}};
  }

  static ProgramBuilder program(Limits limits, uint32_t seed = 1) {
    ProgramBuilder b(limits);
    std::mt19937 random(seed);
    const auto matrix = [&](uint32_t rows, uint32_t width) {
      std::normal_distribution<float> value(0, 0.5f);
      std::vector<float> data(size_t{rows} * width);
      for (float& element : data) element = value(random);
      return b.matrix(rows, width, data);
    };
    const auto norm = [&](uint32_t x, uint32_t width) {
      const uint32_t y = b.tokens(width);
      b.op(KVB_OP_RMS_NORM, {x, b.vector(std::vector<float>(width, 1.25f))}, {y}, {bits(1e-5f)});
      return y;
    };
    const auto linear = [&](uint32_t x, uint32_t in, uint32_t out) {
      const uint32_t y = b.tokens(out);
      b.op(KVB_OP_LINEAR, {x, matrix(out, in)}, {y});
      return y;
    };
    const uint32_t rope = b.rope(KVB_ROPE_HALVES, 0, 1, {1.0, 0.1, 0.01});
    const uint32_t x = b.tokens(kDim);
    b.op(KVB_OP_EMBED, {matrix(kVocab, kDim)}, {x});
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const uint32_t h = norm(x, kDim);
      const uint32_t q = linear(h, kDim, kHeads * kHeadDim);
      const uint32_t k = linear(h, kDim, kKvHeads * kHeadDim);
      const uint32_t v = linear(h, kDim, kKvHeads * kHeadDim);
      b.op(KVB_OP_RMS_NORM, {k, b.vector(std::vector<float>(kHeadDim, 0.75f))}, {k}, {bits(1e-5f), kHeadDim});
      b.op(KVB_OP_ROPE, {q}, {q}, {kHeads, kHeadDim, rope});
      b.op(KVB_OP_ROPE, {k}, {k}, {kKvHeads, kHeadDim, rope});
      b.op(KVB_OP_KV_STORE, {k, v}, {}, {layer});
      const uint32_t y = b.tokens(kHeads * kHeadDim);
      b.op(KVB_OP_ATTENTION, {q}, {y}, {layer, kHeads, bits(0.4f), 0});
      b.op(KVB_OP_ADD, {x, linear(y, kHeads * kHeadDim, kDim)}, {x});
      const uint32_t f = norm(x, kDim);
      const uint32_t gate = linear(f, kDim, kFfn);
      b.op(KVB_OP_GLU, {gate, linear(f, kDim, kFfn)}, {gate}, {KVB_ACT_SILU});
      b.op(KVB_OP_ADD, {x, linear(gate, kFfn, kDim)}, {x});
    }
    const uint32_t picked = b.selected(kDim);
    b.op(KVB_OP_SELECT_ROWS, {x}, {picked});
    b.op(KVB_OP_LINEAR, {picked, matrix(kVocab, kDim)}, {b.output(kVocab)});
    return b;
  }
};

}  // namespace kvasir::testing
