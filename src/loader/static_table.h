// SPDX-License-Identifier: MIT
//
// The backends that are part of the library (KVASIR_STATIC_BACKENDS). CMake generates the definition; where backends
// are plugins it is empty. They go through the same negotiation as plugins.
#pragma once

#include <cstddef>

#include "kvasir/backend.h"

namespace kvasir {

struct StaticBackend {
  const char* name;
  kvb_query_fn query;
};

}  // namespace kvasir

extern const kvasir::StaticBackend kvasir_static_backends[];
extern const size_t kvasir_static_backend_count;
