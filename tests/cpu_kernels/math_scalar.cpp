// SPDX-License-Identifier: MIT
//
// simd/generic/math.h over the scalar vectors.
#define KV_ARRAY_LANES
#define KV_ISA probe_scalar
#include "math_probe.h"
#include "simd/prelude.h"
#include "simd/scalar/vec.h"
// The vectors come first.
#include "math_probe_body.h"
