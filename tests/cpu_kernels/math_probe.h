// SPDX-License-Identifier: MIT
//
// The functions of simd/generic/math.h as loops over arrays of a multiple of 16 floats, one table for each vector type.
// An implementation file includes a vec.h, then math_probe_body.h.
#pragma once

#include <cstddef>

namespace kvasir::cpu {

struct MathProbe {
  using Function = void (*)(const float* x, float* y, size_t n);
  Function exp, exp2, silu, gelu, gelu_tanh, relu;
};

namespace probe_scalar {
extern const MathProbe kProbe;
}
namespace probe_avx2 {
extern const MathProbe kProbe;
}
namespace probe_avx512_emulated {
extern const MathProbe kProbe;
}

}  // namespace kvasir::cpu
