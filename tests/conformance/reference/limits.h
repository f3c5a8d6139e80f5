// SPDX-License-Identifier: MIT
//
// The one table of limits: how far a backend may be from the double reference, per op, weight or cache type and compute
// mode, and for whole models. Nothing else in the tree states a tolerance.
//
// Errors are measured in the scale of their row (reference/ops.h). `largest` limits every element, `nmse` the mean of
// the squares. The numbers follow from the roundings that ops.h and types.h allow, not from what a backend gives:
//
// u = 2^-24 is half a unit of f32: one rounding errs by u of its result at most, by u / sqrt 3 in the mean square.
//   copies           EMBED, ADD, SCALE, SELECT_ROWS, COPY_HEADS: at most two roundings, so 2u.
//   functions        exp, tanh, erf and reciprocals of f32 libraries err by a few units (4u each), and a GLU has two of
//                    them and a product: 12u. ROPE: two factors rounded to f32, two products, a sum: 4u of the pair,
//                    and the pair may be sqrt 2 larger than the row's largest element: 6u.
//   sums             A sum of n random terms in sequence: partial sums grow like sqrt k, so the error is
//                    u / sqrt 3 * sqrt(n^2 / 2) = 0.4 u n of a term, while |x| |w| is n terms: 0.4u whatever n. Five
//                    standard deviations are 2u; weights rounded to f32 once, the bias and the last rounding add 3u.
//                    8u, and half of it squared for the mean.
//   sums of squares  have one sign: partial sums grow like k, the error like u sqrt(n) / 3, under 11u at n = 1024, half
//                    of it under the root; with the root, quotient and products 16u.
//   LAYER_NORM       two such sums, measured against |x| + |mean|: 24u.
//   attention        an error of a score is 2 * 8u of its |q| |k| (weights and their sum), exp 4u, the sum of up to 256
//                    weights of one sign in a split 5u, the joint of splits 4u: 32u.
//   routes           exp of a score: u of its size, then as functions and sums: 16u.
//
// Mode FAST rounds activations to the partner's precision; by Cauchy and Schwarz an error e of x in |x| is at most e in
// |x| |w|:
//   f16 and bf16     half a unit: 2^-11, 2^-8. In the mean square a third of that at most.
//   int8 blocks      |x_i - x'_i| <= a / 254 for the block's largest a <= |x_block|, so |e| <= sqrt(32) / 254 |x| =
//                    0.0223 |x|: the limit of every element, whatever the data. For random x the mean error is
//                    0.0055 / sqrt(n), 0.001 at n = 32; twice that for the mean.
//   attention        scores as above (twice), the weights may be rounded as the values' partner once more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kvasir/ops.h"

namespace kvasir::conformance {

struct Limit {
  double nmse, largest;
};

// An error of `largest`, or of a part of it in the mean square.
constexpr Limit limit_of(double largest, double mean_part) {
  return {largest * mean_part * largest * mean_part, largest};
}

struct OpLimit {
  uint16_t code;
  Limit limit;
};

inline constexpr double kUnit = 1.0 / (1 << 24);

inline constexpr OpLimit kOpLimits[] = {
    {KVB_OP_EMBED, limit_of(2 * kUnit, 1)},
    {KVB_OP_RMS_NORM, limit_of(16 * kUnit, 0.5)},
    {KVB_OP_LINEAR, limit_of(8 * kUnit, 0.5)},
    {KVB_OP_ROPE, limit_of(6 * kUnit, 0.5)},
    {KVB_OP_ATTENTION, limit_of(32 * kUnit, 0.5)},
    {KVB_OP_GLU, limit_of(12 * kUnit, 0.5)},
    {KVB_OP_ADD, limit_of(2 * kUnit, 1)},
    {KVB_OP_SELECT_ROWS, limit_of(0, 1)},
    {KVB_OP_LAYER_NORM, limit_of(24 * kUnit, 0.5)},
    {KVB_OP_ACTIVATION, limit_of(12 * kUnit, 0.5)},
    {KVB_OP_SCALE, limit_of(2 * kUnit, 1)},
    {KVB_OP_SOFTCAP, limit_of(12 * kUnit, 0.5)},
    {KVB_OP_COPY_HEADS, limit_of(0, 1)},
    {KVB_OP_HEAD_LINEAR, limit_of(8 * kUnit, 0.5)},
    {KVB_OP_MOE_ROUTE, limit_of(16 * kUnit, 0.5)},
    {KVB_OP_MOE_LINEAR, limit_of(8 * kUnit, 0.5)},
    {KVB_OP_MOE_SUM, limit_of(32 * kUnit, 0.5)},  // behind MOE_ROUTE and MOE_LINEAR, with their errors
    {KVB_OP_TOP_K, limit_of(0, 1)},
};

// What mode FAST may add by rounding an activation for a partner of this type.
constexpr Limit rounding_limit(uint32_t type, uint32_t compute_mode) {
  if (compute_mode != KV_COMPUTE_FAST || type == KV_TYPE_F32) return {0, 0};
  if (type == KV_TYPE_F16) return limit_of(1.0 / (1 << 11), 0.6);
  if (type == KV_TYPE_BF16) return limit_of(1.0 / (1 << 8), 0.6);
  return {0.002 * 0.002, 0.0223};
}

// Errors of independent causes.
inline Limit both(const Limit& a, const Limit& b) {
  const double mean = std::sqrt(a.nmse) + std::sqrt(b.nmse);
  return {mean * mean, a.largest + b.largest};
}

// Of an op whose weight (if it has one) is of this type.
inline Limit op_limit(uint16_t code, uint32_t weight_type = KV_TYPE_F32, uint32_t compute_mode = KV_COMPUTE_EXACT) {
  for (const OpLimit& entry : kOpLimits) {
    if (entry.code == code) return both(entry.limit, rounding_limit(weight_type, compute_mode));
  }
  return {0, 0};  // no entry, nothing but equality passes
}

inline Limit attention_limit(uint32_t k_type, uint32_t v_type, uint32_t compute_mode) {
  const Limit keys = rounding_limit(k_type, compute_mode), values = rounding_limit(v_type, compute_mode);
  return both(op_limit(KVB_OP_ATTENTION), both(both(keys, keys), values));
}

// How far an element of a moved key, which was turned in f32 and rounded to its type again, may be from the exact one.
// `largest` is the largest magnitude of its block (of its head, where the type has no blocks): half a step of the type,
// and the turn. q4_0 reaches from -8 to 7 steps, so that its far end may be cut by a whole one.
inline double moved_key_limit(uint32_t type, double element, double largest) {
  const double turn = 16 * kUnit * largest;
  switch (type) {
    case KV_TYPE_F32: return turn;
    case KV_TYPE_F16: return std::fabs(element) / (1 << 11) + turn + 3e-8;  // half of the smallest step
    case KV_TYPE_BF16: return std::fabs(element) / (1 << 8) + turn;
    case KV_TYPE_Q8_0: return 0.6 * largest / 127;
    default: return 1.1 * largest / 8;
  }
}

// Whole models: rms of the error of the logits over their standard deviation, against a float64 forward over
// dequantised weights. The numbers of the architecture: with an f32 cache a few hundred roundings of u, with a rounded
// cache about the rounding of its rows, in mode FAST what int8 activations give over a stack of layers.
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

}  // namespace kvasir::conformance
