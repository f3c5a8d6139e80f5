// SPDX-License-Identifier: MIT
//
// simd/generic/math.h over AVX2.
#define KV_ISA probe_avx2
#include "math_probe.h"
#include "simd/prelude.h"

KV_TARGET_BEGIN("avx2,fma,f16c")
#include "simd/avx2/vec.h"
// The vectors come first.
#include "math_probe_body.h"
KV_TARGET_END
