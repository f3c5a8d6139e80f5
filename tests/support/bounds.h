// SPDX-License-Identifier: MIT
//
// Logits against others: their deviation, and the bound on it, which stands with all limits of the tree in
// tests/conformance/reference/limits.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/reference/limits.h"

namespace kvasir::test {

using conformance::logits_bound;

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
