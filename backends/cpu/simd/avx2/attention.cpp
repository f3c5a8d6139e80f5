// SPDX-License-Identifier: MIT
//
// Attention and cache kernels in AVX2, FMA and F16C.
#include "simd/attention.h"

#include "sdk/half.h"
#include "simd/prelude.h"

#define KV_ISA avx2

KV_TARGET_BEGIN("avx2,fma,f16c")

#include "simd/avx2/vec.h"
// Everything below is written over the vectors above.
#include "simd/generic/math.h"
namespace kvasir::cpu::KV_ISA {
constexpr bool kWideTiles = true;
}
#include "simd/generic/attention.h"
#include "simd/generic/kv_store.h"

KV_TARGET_END

namespace kvasir::cpu::KV_ISA {

const AttentionKernels kAttentionKernels = {"avx2",           cache_encode,   attention_scores, attention_softmax,
                                            attention_values, attention_join, attention_finish};

}  // namespace kvasir::cpu::KV_ISA
