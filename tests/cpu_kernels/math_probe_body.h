// SPDX-License-Identifier: MIT
//
// Defines KV_ISA::kProbe (see math_probe.h) over the vectors already included.
#pragma once

#include "simd/generic/math.h"

namespace kvasir::cpu::KV_ISA {

#define KV_PROBE(name)                                                  \
  static void probe_##name(const float* x, float* y, size_t n) {        \
    for (size_t i = 0; i < n; i += 16) store(y + i, name(load(x + i))); \
  }
KV_PROBE(exp)
KV_PROBE(exp2)
KV_PROBE(silu)
KV_PROBE(gelu)
KV_PROBE(gelu_tanh)
KV_PROBE(relu)
#undef KV_PROBE

const MathProbe kProbe = {probe_exp, probe_exp2, probe_silu, probe_gelu, probe_gelu_tanh, probe_relu};

}  // namespace kvasir::cpu::KV_ISA
