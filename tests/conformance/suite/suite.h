// SPDX-License-Identifier: MIT
//
// What the groups of the conformance suite share: a case with its name and the obligations it checks, the backend under
// test, and the three ways a case ends (returns, fails, does not apply). The command line, the supervision of a backend
// that crashes or hangs, and the reports are in tool/.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/backend_harness.h"

namespace kvasir::conformance {

// Thrown by a case whose check does not hold; the text is a sentence with the offending value in it.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by a case that asks for something this backend may refuse. Counts as a failure in the core profile.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(bool holds, const std::string& sentence) {
  if (!holds) throw Failed(sentence);
}

// A number that a case measured, for the report.
struct Figure {
  std::string name;
  double value;
  std::string unit;
};

// The backend under test. Each case opens what it needs and closes it again, so that cases can run in any order.
struct Subject {
  kvb_query_fn query = nullptr;
  std::string path;
  std::string variant;          // forced variant; "" = the backend's choice
  std::vector<Figure> figures;  // filled by cases that measure

  // Device 0 on `host`.
  testing::TestDevice open(testing::TestHost& host) const {
    return testing::TestDevice(query, host, variant.empty() ? nullptr : variant.c_str());
  }
};

enum class Profile { kCore, kFull };

struct Case {
  std::string name;         // "ops/LINEAR/Q4_K/rows=33,width=256,tokens=7": the group is the part before the first '/'
  std::string obligations;  // "KVB-11 KVB-19"
  Profile profile;          // kCore: every backend must pass it; kFull: it may say unsupported
  std::function<void(Subject&)> run;
};

// One function per group, in the file of the same name. They describe cases and touch no backend.
void add_load_cases(std::vector<Case>& cases);
void add_memory_cases(std::vector<Case>& cases);
void add_ops_cases(std::vector<Case>& cases);
void add_poison_cases(std::vector<Case>& cases);
void add_groups_cases(std::vector<Case>& cases);
void add_program_cases(std::vector<Case>& cases);
void add_replay_cases(std::vector<Case>& cases);
void add_cache_cases(std::vector<Case>& cases);
void add_async_cases(std::vector<Case>& cases);
void add_faults_cases(std::vector<Case>& cases);
void add_perf_cases(std::vector<Case>& cases);

}  // namespace kvasir::conformance
