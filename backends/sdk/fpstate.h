// SPDX-License-Identifier: MIT
//
// The floating-point control state of a thread: kernels run in the default one (round to nearest even, denormals kept,
// no traps) whoever's thread it is, and the thread gets its own state back, exception flags included.
#pragma once

#include <cfenv>

namespace kvasir::sdk {

class FloatingPointScope {
 public:
  FloatingPointScope() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingPointScope() { std::fesetenv(&saved_); }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace kvasir::sdk
