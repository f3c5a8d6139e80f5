// SPDX-License-Identifier: MIT
//
// Kernels that work element by element or row by row; simd/kernels.h says what each computes.
#pragma once

#include "simd/generic/math.h"

namespace kvasir::cpu::KV_ISA {

// Sum of squares in a fixed order: vector i of the run goes to sum i % 4, the four sums are joined as
// (0 + 1) + (2 + 3), and their lanes by the tree of sum_lanes.
KV_INLINE float sum_of_squares(const float* x, uint32_t n) {
  F32x16 sum[4] = {zero(), zero(), zero(), zero()};
  uint32_t i = 0;
  for (; i + 64 <= n; i += 64) {
    KV_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const F32x16 v = load(x + i + j * 16);
      sum[j] = fma(v, v, sum[j]);
    }
  }
  for (int j = 0; i < n; ++j, i += 16) {
    const F32x16 v = load_first(x + i, n - i);
    sum[j] = fma(v, v, sum[j]);
  }
  return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// y = x * scale * w, w may be NULL. The tail is a vector of its own, so that the loop has no masks.
KV_INLINE void scale_row(const float* x, F32x16 scale, const float* w, uint32_t n, float* y) {
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 v = load(x + i) * scale;
    store(y + i, w ? v * load(w + i) : v);
  }
  if (i == n) return;
  const F32x16 v = load_first(x + i, n - i) * scale;
  store_first(y + i, w ? v * load_first(w + i, n - i) : v, n - i);
}

// For rows whose squares pass the range of f32: as if divided by 2^96 first. eps is nothing beside them.
inline void rms_norm_large(const float* x, const float* w, uint32_t n, float* y) {
  scale_row(x, broadcast(0x1p-96f), nullptr, n, y);
  const float mean = sum_of_squares(y, n) / float(n);
  scale_row(y, broadcast(1.0f / __builtin_sqrtf(mean)), w, n, y);
}

inline void rms_norm(const float* x, size_t x_stride, const float* w, float eps, uint32_t rows, uint32_t width,
                     uint32_t group, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r)
    for (uint32_t g = 0; g < width; g += group) {
      const float* in = x + r * x_stride + g;
      float* out = y + r * y_stride + g;
      const float mean = sum_of_squares(in, group) / float(group);
      if (mean > 3.4028235e38f) {
        rms_norm_large(in, w, group, out);
      } else {
        scale_row(in, broadcast(1.0f / __builtin_sqrtf(mean + eps)), w, group, out);
      }
    }
}

// Rotates n <= 16 pairs (u, v).
struct Rotation {
  F32x16 cos, sin;
  KV_INLINE F32x16 first(F32x16 u, F32x16 v) const { return fnma(v, sin, u * cos); }
  KV_INLINE F32x16 second(F32x16 u, F32x16 v) const { return fma(u, sin, v * cos); }
};

KV_INLINE void rotate_halves(const float* u_in, const float* v_in, const Rotation& rotation, uint32_t n, float* u_out,
                             float* v_out) {
  const F32x16 u = load_first(u_in, n), v = load_first(v_in, n);
  store_first(u_out, rotation.first(u, v), n);
  store_first(v_out, rotation.second(u, v), n);
}

KV_INLINE void rotate_adjacent(const float* in, const Rotation& rotation, uint32_t n, float* out) {
  const uint32_t low = n < 8 ? 2 * n : 16, high = 2 * n - low;
  const F32Pair uv = deinterleave(load_first(in, low), load_first(in + low, high));
  const F32Pair rotated = interleave(rotation.first(uv.a, uv.b), rotation.second(uv.a, uv.b));
  store_first(out, rotated.a, low);
  store_first(out + low, rotated.b, high);
}

inline void rope(const float* x, const float* cos, const float* sin, uint32_t heads, uint32_t head_dim, uint32_t first,
                 uint32_t pairs, RopePairing pairing, float* y) {
  if (x != y) std::memcpy(y, x, size_t{heads} * head_dim * sizeof(float));
  for (uint32_t i = 0; i < pairs; i += 16) {
    const uint32_t n = pairs - i < 16 ? pairs - i : 16;
    const Rotation rotation = {load_first(cos + i, n), load_first(sin + i, n)};
    for (size_t h = 0; h < heads; ++h) {
      const size_t start = h * head_dim + first;
      if (pairing == RopePairing::kAdjacent) {
        rotate_adjacent(y + start + 2 * size_t{i}, rotation, n, y + start + 2 * size_t{i});
      } else {
        float *u = y + start + i, *v = u + pairs;
        rotate_halves(u, v, rotation, n, u, v);
      }
    }
  }
}

template <Activation act>
inline void glu_as(const float* gate, const float* up, size_t n, float* y) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, apply<act>(load(gate + i)) * load(up + i));
  const uint32_t rest = uint32_t(n - i);
  if (rest > 0) store_first(y + i, apply<act>(load_first(gate + i, rest)) * load_first(up + i, rest), rest);
}

inline void glu(Activation act, const float* gate, const float* up, size_t n, float* y) {
  switch (act) {
    case Activation::kSilu: return glu_as<Activation::kSilu>(gate, up, n, y);
    case Activation::kGelu: return glu_as<Activation::kGelu>(gate, up, n, y);
    case Activation::kGeluTanh: return glu_as<Activation::kGeluTanh>(gate, up, n, y);
    case Activation::kRelu: return glu_as<Activation::kRelu>(gate, up, n, y);
  }
}

template <Activation act>
inline void activate_as(const float* x, size_t n, float* y) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, apply<act>(load(x + i)));
  const uint32_t rest = uint32_t(n - i);
  if (rest > 0) store_first(y + i, apply<act>(load_first(x + i, rest)), rest);
}

inline void activate(Activation act, const float* x, size_t n, float* y) {
  switch (act) {
    case Activation::kSilu: return activate_as<Activation::kSilu>(x, n, y);
    case Activation::kGelu: return activate_as<Activation::kGelu>(x, n, y);
    case Activation::kGeluTanh: return activate_as<Activation::kGeluTanh>(x, n, y);
    case Activation::kRelu: return activate_as<Activation::kRelu>(x, n, y);
  }
}

inline void add(const float* a, const float* b, size_t n, float* y) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(a + i) + load(b + i));
  const uint32_t rest = uint32_t(n - i);
  if (rest > 0) store_first(y + i, load_first(a + i, rest) + load_first(b + i, rest), rest);
}

inline void scale(const float* x, float factor, size_t n, float* y) {
  const F32x16 f = broadcast(factor);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(x + i) * f);
  const uint32_t rest = uint32_t(n - i);
  if (rest > 0) store_first(y + i, load_first(x + i, rest) * f, rest);
}

}  // namespace kvasir::cpu::KV_ISA
