// SPDX-License-Identifier: MIT
//
// The one table of bounds: how far logits may be from a float64 forward over dequantised weights, as rms of the error
// over the standard deviation of the logits. No other test of whole models states a tolerance.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kvasir/types.h"

namespace kvasir::test {

struct LogitsBound {
  uint32_t compute_mode;
  uint32_t cache_type;
  double bound;
};

inline constexpr LogitsBound kLogitsBounds[] = {
    {KV_COMPUTE_EXACT, KV_TYPE_F32, 2e-5},  {KV_COMPUTE_EXACT, KV_TYPE_F16, 2e-3},
    {KV_COMPUTE_EXACT, KV_TYPE_BF16, 2e-2}, {KV_COMPUTE_EXACT, KV_TYPE_Q8_0, 2e-2},
    {KV_COMPUTE_FAST, KV_TYPE_F32, 4e-2},   {KV_COMPUTE_FAST, KV_TYPE_F16, 4e-2},
    {KV_COMPUTE_FAST, KV_TYPE_BF16, 4e-2},  {KV_COMPUTE_FAST, KV_TYPE_Q8_0, 4e-2},
};

inline double logits_bound(uint32_t compute_mode, uint32_t cache_type) {
  for (const LogitsBound& b : kLogitsBounds) {
    if (b.compute_mode == compute_mode && b.cache_type == cache_type) return b.bound;
  }
  return 0.0;  // no entry, nothing passes
}

struct Deviation {
  double relative_rms = 0.0;  // rms of the error / standard deviation of `want`
  double max = 0.0;           // largest absolute error
};

inline Deviation compare(const std::vector<float>& got, const std::vector<float>& want) {
  double sum = 0, squares = 0, errors = 0;
  Deviation d;
  for (size_t i = 0; i < want.size(); i++) {
    const double w = want[i], e = got[i] - w;
    sum += w;
    squares += w * w;
    errors += e * e;
    // A NaN must not pass as "not larger".
    d.max = std::isfinite(e) ? std::max(d.max, std::abs(e)) : INFINITY;
  }
  const auto n = static_cast<double>(want.size());
  const double variance = squares / n - (sum / n) * (sum / n);
  d.relative_rms = std::isfinite(d.max) ? std::sqrt(errors / n / variance) : INFINITY;
  return d;
}

}  // namespace kvasir::test
