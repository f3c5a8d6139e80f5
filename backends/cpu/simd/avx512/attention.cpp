// SPDX-License-Identifier: MIT
//
// Attention and cache kernels in AVX-512.
#include "simd/attention.h"

#include "sdk/half.h"
#include "simd/prelude.h"

#ifndef KV_ISA  // tests/cpu compiles this file over emulated intrinsics, under another name
#define KV_ISA avx512
#endif

KV_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "simd/avx512/vec.h"
// Everything below is written over the vectors above.
#include "simd/generic/math.h"
namespace kvasir::cpu::KV_ISA {
constexpr bool kWideTiles = true;
}
#include "simd/generic/attention.h"
#include "simd/generic/kv_store.h"

KV_TARGET_END

namespace kvasir::cpu::KV_ISA {

const AttentionKernels kAttentionKernels = {"avx512",         cache_encode,   attention_scores, attention_softmax,
                                            attention_values, attention_join, attention_finish};

}  // namespace kvasir::cpu::KV_ISA
