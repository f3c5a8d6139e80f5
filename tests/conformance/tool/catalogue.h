// SPDX-License-Identifier: MIT
//
// All cases of the suite, and the selection of those that a run is about.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "suite/suite.h"

namespace kvasir::conformance {

// The first case is the opening of the plugin (kOpenCase): it has no body, the worker does it for every run.
inline constexpr char kOpenCase[] = "load/open";

std::vector<Case> all_cases();
// In the order of the catalogue.
std::vector<Case> select(const std::vector<Case>& cases, const Options& options);

std::string group_of(const Case& item);
bool matches_any(const std::string& name, const std::vector<std::string>& globs);
const char* profile_name(Profile profile);

}  // namespace kvasir::conformance
