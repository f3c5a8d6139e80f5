// SPDX-License-Identifier: MIT
//
// simd/generic/math.h over AVX-512 with emulated intrinsics.
#define KV_ISA probe_avx512_emulated
#include "emulated_avx512.h"
// The intrinsics come first.
#include "math_probe.h"
#include "simd/avx512/vec.h"
// The vectors come first.
#include "math_probe_body.h"
