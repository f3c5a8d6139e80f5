// SPDX-License-Identifier: MIT
//
// The floating-point control state of a calling thread: inside the library it is the default one (round to nearest,
// denormals kept, no traps), whatever the application has set; callbacks run in the application's own, and the thread
// has that back after the call, exception flags included. Threads of backends are the backends' business.
#pragma once

#include <cfenv>

namespace kvasir {

// For the time of a call. A call made from a callback nests.
class FloatBoundary {
 public:
  FloatBoundary();
  ~FloatBoundary();
  FloatBoundary(const FloatBoundary&) = delete;
  FloatBoundary& operator=(const FloatBoundary&) = delete;

 private:
  friend class HostFloatState;
  FloatBoundary* const outer_;
  std::fenv_t host_;
};

// For the time of a callback: the application's state as it would be without us. What the callback changes stays
// changed for the application. Does nothing outside a call.
class HostFloatState {
 public:
  HostFloatState();
  ~HostFloatState();
  HostFloatState(const HostFloatState&) = delete;
  HostFloatState& operator=(const HostFloatState&) = delete;

 private:
  FloatBoundary* const boundary_;
  std::fenv_t inside_;
};

}  // namespace kvasir
