// SPDX-License-Identifier: MIT
//
// Log: the application's sink, or nothing.
#pragma once

#include "kvasir/types.h"

namespace kvasir {

struct Log {
  kv_log_fn sink = nullptr;
  void* user = nullptr;

  [[gnu::format(printf, 3, 4)]] void operator()(int32_t level, const char* format, ...) const;
};

}  // namespace kvasir
