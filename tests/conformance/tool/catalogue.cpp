// SPDX-License-Identifier: MIT
//
// Collecting and selecting cases.
#include "catalogue.h"

#include <fnmatch.h>

#include <algorithm>

namespace kvasir::conformance {

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  cases.push_back({kOpenCase, "KVB-4", Profile::kCore, [](Subject&) {}});
  add_load_cases(cases);
  add_memory_cases(cases);
  add_ops_cases(cases);
  add_poison_cases(cases);
  add_groups_cases(cases);
  add_program_cases(cases);
  add_replay_cases(cases);
  add_cache_cases(cases);
  add_async_cases(cases);
  add_faults_cases(cases);
  add_perf_cases(cases);
  return cases;
}

std::vector<Case> select(const std::vector<Case>& cases, const Options& options) {
  std::vector<Case> selected;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(selected), [&](const Case& item) {
    const bool in_profile = options.profile == Profile::kFull || item.profile == Profile::kCore;
    return in_profile && (options.filters.empty() || matches_any(item.name, options.filters));
  });
  return selected;
}

std::string group_of(const Case& item) { return item.name.substr(0, item.name.find('/')); }

bool matches_any(const std::string& name, const std::vector<std::string>& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

const char* profile_name(Profile profile) { return profile == Profile::kCore ? "core" : "full"; }

}  // namespace kvasir::conformance
