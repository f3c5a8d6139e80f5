// SPDX-License-Identifier: MIT
//
// Attention and cache kernels in plain C++.
#include "simd/attention.h"

#include "sdk/half.h"
#include "simd/prelude.h"

#define KV_ISA scalar
#include "simd/scalar/vec.h"
// Everything below is written over the vectors above.
#include "simd/generic/math.h"
namespace kvasir::cpu::KV_ISA {
constexpr bool kWideTiles = false;
}
#include "simd/generic/attention.h"
#include "simd/generic/kv_store.h"

namespace kvasir::cpu::scalar {

const AttentionKernels kAttentionKernels = {"scalar",         cache_encode,   attention_scores, attention_softmax,
                                            attention_values, attention_join, attention_finish};

}  // namespace kvasir::cpu::scalar
