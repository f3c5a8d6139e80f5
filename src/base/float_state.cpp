// SPDX-License-Identifier: MIT
#include "base/float_state.h"

#include <utility>

namespace kvasir {

namespace {
[[gnu::tls_model("initial-exec")]] constinit thread_local FloatBoundary* current =
    nullptr;  // of the innermost call of this thread; null in a callback
}

FloatBoundary::FloatBoundary() : outer_(std::exchange(current, this)) {
  std::fegetenv(&host_);
  std::fesetenv(FE_DFL_ENV);
}

FloatBoundary::~FloatBoundary() {
  std::fesetenv(&host_);
  current = outer_;
}

HostFloatState::HostFloatState() : boundary_(std::exchange(current, nullptr)) {
  if (boundary_ == nullptr) return;
  std::fegetenv(&inside_);
  std::fesetenv(&boundary_->host_);
}

HostFloatState::~HostFloatState() {
  if (boundary_ == nullptr) return;
  std::fegetenv(&boundary_->host_);
  std::fesetenv(&inside_);
  current = boundary_;
}

}  // namespace kvasir
