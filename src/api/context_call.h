// SPDX-License-Identifier: MIT
//
// A call on a context: behind the boundary, and by one thread at a time.
#pragma once

#include "api/boundary.h"
#include "api/handles.h"

namespace kvasir::api {

template <class F>
kv_status context_call(const kv_context* context, kv_error* error, F&& body) noexcept {
  return guard(error, [&]() -> Status {
    KV_CHECK(context != nullptr, KV_INVALID_ARGUMENT, "context is NULL");
    const Context::Lock lock(*context->context);
    KV_CHECK(lock.acquired(), KV_BUSY,
             "the context is in use by another thread, or by the call whose callback this is");
    return body(*context->context);
  });
}

}  // namespace kvasir::api
