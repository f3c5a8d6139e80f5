// SPDX-License-Identifier: MIT
//
// simd/generic/math.h over the scalar vectors.
#define KV_ISA probe_scalar
#include "math_probe.h"
#include "simd/prelude.h"
// The vectors come first.
#include "simd/scalar/vec.h"
#include "simd/generic/math.h"
#include "math_probe_body.h"
