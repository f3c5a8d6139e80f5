// SPDX-License-Identifier: MIT
//
// Calls into a plugin. Plugins must not throw; one that does all the same has failed, and nobody else is disturbed.
#pragma once

#include <exception>
#include <new>

#include "base/status.h"

namespace kvasir {

// What `body` (a Status()) gives; an exception that leaves it becomes a failure with `who` in its sentence.
template <class F>
Status call_plugin(const char* who, F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status::error(KV_OUT_OF_MEMORY, "%s found no memory left", who);
  } catch (const std::exception& e) {
    return Status::error(KV_INTERNAL, "%s threw an exception: %.300s", who, e.what());
  } catch (...) {
    return Status::error(KV_INTERNAL, "%s threw an exception", who);
  }
}

}  // namespace kvasir
