// SPDX-License-Identifier: MIT
//
// The process that opens the plugin and runs cases until they are done or it dies.
#pragma once

#include <cstddef>
#include <vector>

#include "options.h"
#include "suite/suite.h"

namespace kvasir::conformance {

// Runs the cases from `first` on and reports each through `pipe` (messages.h). Standard output and error go to the file
// `capture`. Does not return.
[[noreturn]] void work(const std::vector<Case>& cases, size_t first, const Options& options, int pipe, int capture);

}  // namespace kvasir::conformance
