// SPDX-License-Identifier: MIT
//
// Which table of attention kernels goes with which table of kernels.
#include "simd/attention.h"

#include <cstring>

namespace kvasir::cpu {

const AttentionKernels& find_attention_kernels(const Kernels& kernels) {
#if defined(__x86_64__)
  if (std::strcmp(kernels.name, avx512::kAttentionKernels.name) == 0) return avx512::kAttentionKernels;
  if (std::strcmp(kernels.name, avx2::kAttentionKernels.name) == 0) return avx2::kAttentionKernels;
#endif
  static_cast<void>(kernels);
  return scalar::kAttentionKernels;
}

}  // namespace kvasir::cpu
