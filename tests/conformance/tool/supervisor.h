// SPDX-License-Identifier: MIT
//
// Runs cases in a child process, so that a backend that crashes, exits or hangs fails one case and no more. The process
// of the supervisor itself never opens the plugin.
#pragma once

#include <functional>
#include <vector>

#include "options.h"
#include "report.h"

namespace kvasir::conformance {

using Progress = std::function<void(const Case&, const Outcome&)>;

// Throws when the system refuses a process, a pipe or a temporary file.
Report run_cases(const std::vector<Case>& cases, const Options& options, const Progress& progress);

}  // namespace kvasir::conformance
