// SPDX-License-Identifier: MIT
//
// Which tables of kernels this processor and its operating system can run.
#include "simd/kernels.h"

#include <cstring>

#include "simd/tables.h"

namespace kvasir::cpu {
namespace {

struct Available {
  const Kernels* list[3];
  uint32_t count = 0;

  // __builtin_cpu_supports also asks whether the operating system saves the registers. It knows no name for F16C in
  // clang; every processor with AVX2 has it.
  Available() {
    list[count++] = &scalar::kKernels;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
    list[count++] = &avx2::kKernels;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vnni"))
      return;
    list[count++] = __builtin_cpu_supports("avx512bf16") ? &avx512::kKernelsWithBF16 : &avx512::kKernels;
#endif
  }
};

const Available& available() {
  static const Available list;
  return list;
}

}  // namespace

KernelList available_kernels() { return {available().list, available().count}; }

const Kernels* find_kernels(const char* name) {
  const Available& all = available();
  if (name == nullptr) return all.list[all.count - 1];
  for (uint32_t i = 0; i < all.count; ++i)
    if (std::strcmp(all.list[i]->name, name) == 0) return all.list[i];
  return nullptr;
}

}  // namespace kvasir::cpu
