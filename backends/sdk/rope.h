// SPDX-License-Identifier: MIT
//
// Turning the keys of a cached row to another position.
#pragma once

#include <cmath>
#include <cstdint>

#include "kvasir/ops.h"
#include "sdk/walk.h"

namespace kvasir::sdk {

// Turns the pairs of one head by the angle of `delta` positions. The magnitude of the parameters is in stored keys
// already.
inline void turn_head(const kvb_rope& rope, int32_t delta, float* head) {
  const double* frequency = rope_frequencies(rope);
  const bool adjacent = rope.pairing == KVB_ROPE_ADJACENT;
  for (uint32_t i = 0; i < rope.pairs; ++i) {
    float& u = head[rope.first + (adjacent ? 2 * i : i)];
    float& v = head[rope.first + (adjacent ? 2 * i + 1 : i + rope.pairs)];
    const double angle = delta * frequency[i];
    const auto c = static_cast<float>(std::cos(angle));
    const auto s = static_cast<float>(std::sin(angle));
    const float turned = u * c - v * s;
    v = u * s + v * c;
    u = turned;
  }
}

}  // namespace kvasir::sdk
