// SPDX-License-Identifier: MIT
//
// Calling a plugin: its kv_status and kv_error become a Status, its objects are owned.
#pragma once

#include <memory>

#include "base/status.h"
#include "kvasir/backend.h"

namespace kvasir {

// call([&](kv_error* error) { return api->cache_create(..., error); })
template <class F>
Status backend_call(F&& function) {
  kv_error error = {};
  error.struct_size = sizeof error;
  const kv_status status = function(&error);
  if (status == KV_OK) return {};
  return Status::error(status, "%s", error.message[0] != '\0' ? error.message : "the backend gave no reason");
}

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

// An owner that holds nothing yet; `destroy` is the table's function for this kind.
template <class T>
Owned<T> nothing(void (*destroy)(T*)) {
  return Owned<T>(nullptr, destroy);
}

}  // namespace kvasir
