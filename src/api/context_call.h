// SPDX-License-Identifier: MIT
//
// A call on a context: behind the boundary, and by one thread at a time. A context that is released while it is in use
// (by another thread, or in a callback) goes when that use ends.
#pragma once

#include "api/boundary.h"
#include "api/handles.h"

namespace kvasir::api {

class ContextUse {
 public:
  explicit ContextUse(const kv_context& context)
      : context_(context), acquired_((context.use.fetch_or(kBusy, std::memory_order_acquire) & kBusy) == 0) {}
  ~ContextUse() {
    if (!acquired_) return;
    const uint32_t before = context_.use.fetch_and(~kBusy, std::memory_order_acq_rel);
    if ((before & kReleased) != 0) delete &context_;
  }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

  bool acquired() const { return acquired_; }

  static void release(const kv_context* context) {
    const uint32_t before = context->use.fetch_or(kReleased, std::memory_order_acq_rel);
    if ((before & kBusy) == 0) delete context;
  }

 private:
  static constexpr uint32_t kBusy = 1, kReleased = 2;

  const kv_context& context_;
  const bool acquired_;
};

template <class F>
kv_status context_call(const kv_context* context, kv_error* error, F&& body) noexcept {
  return guard(error, [&]() -> Status {
    KV_CHECK(context != nullptr, KV_INVALID_ARGUMENT, "context is NULL");
    const ContextUse use(*context);
    KV_CHECK(use.acquired(), KV_BUSY, "the context is in use by another thread, or by the call whose callback this is");
    return body(*context->context);
  });
}

}  // namespace kvasir::api
