// SPDX-License-Identifier: MIT
//
// FloatState sets the floating-point state all kernels assume (round to nearest, no traps, denormals flushed to zero)
// and puts the thread's own state back at the end of the scope.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace kvasir::cpu {

class FloatState {
 public:
#if defined(__x86_64__) || defined(__i386__)
  FloatState() : saved_(_mm_getcsr()) { _mm_setcsr(kMasked | kFlushToZero | kDenormalsAreZero); }
  ~FloatState() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FloatState() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    const uint64_t flush = uint64_t{1} << 24;  // FZ; rounding mode bits 0: nearest; traps off
    asm volatile("msr fpcr, %0" : : "r"(flush));
  }
  ~FloatState() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  FloatState() : saved_(0) {}
#endif
  FloatState(const FloatState&) = delete;
  FloatState& operator=(const FloatState&) = delete;

 private:
#if defined(__x86_64__) || defined(__i386__)
  static constexpr uint32_t kMasked = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  uint32_t saved_;
#else
  uint64_t saved_;
#endif
};

}  // namespace kvasir::cpu
