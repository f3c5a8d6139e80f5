// SPDX-License-Identifier: MIT
//
// Everything the kernels use from outside. A kernel file includes this first, before its target region begins, so that
// no function of the standard library is ever compiled for an instruction set the processor may lack.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(KV_EMULATED_INTRINSICS)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // g++-12 takes the undefined operands of its own AVX-512 header for mistakes
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

#include "pack/layout.h"
#include "sdk/half.h"
#include "simd/kernels.h"

#if defined(KV_ARRAY_LANES)  // lanes that are arrays, not registers: inlining by force takes minutes and gains nothing
#define KV_INLINE inline
#else
#define KV_INLINE inline __attribute__((always_inline))
#endif
#define KV_NOINLINE __attribute__((noinline))  // inner loops get the registers for themselves

// Before a loop: n copies of its body, which is all of them where the count is a constant up to n.
#define KV_PRAGMA(text) _Pragma(#text)
#if defined(KV_ARRAY_LANES)
#define KV_UNROLL(n)
#elif defined(__clang__)
#define KV_UNROLL(n) KV_PRAGMA(unroll n)
#else
#define KV_UNROLL(n) KV_PRAGMA(GCC unroll n)
#endif

// A region of functions compiled for an instruction set: KV_TARGET_BEGIN("avx2,fma") ... KV_TARGET_END.
#if defined(KV_EMULATED_INTRINSICS)
#define KV_TARGET_BEGIN(isa)
#define KV_TARGET_END
#elif defined(__clang__)
#define KV_TARGET_BEGIN(isa) KV_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define KV_TARGET_END KV_PRAGMA(clang attribute pop)
#else
#define KV_TARGET_BEGIN(isa) KV_PRAGMA(GCC push_options) KV_PRAGMA(GCC target(isa))
#define KV_TARGET_END KV_PRAGMA(GCC pop_options)
#endif
