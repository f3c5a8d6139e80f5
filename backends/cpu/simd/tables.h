// SPDX-License-Identifier: MIT
//
// The tables that simd/<instruction set>/kernels.cpp define. Which of them this processor can run is in kernels.cpp.
#pragma once

#include "simd/kernels.h"

namespace kvasir::cpu {

namespace scalar {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels, kKernelsWithBF16;
}
#endif

}  // namespace kvasir::cpu
