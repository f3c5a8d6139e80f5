// SPDX-License-Identifier: MIT
//
// Whether a plugin's entry function opens files, starts threads or talks to a device.
#pragma once

#include <string>

#include "kvasir/backend.h"

namespace kvasir::conformance {

// Runs the first query of a fresh copy of the plugin in a process in which such calls end the process. Gives the name
// of the call, or "". Throws Unsupported where the system has no seccomp filters.
std::string forbidden_call_of_query(const std::string& path, kvb_query_fn fallback);

}  // namespace kvasir::conformance
