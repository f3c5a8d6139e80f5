// SPDX-License-Identifier: MIT
//
// The result of a run, as text for people and as JSON, the conformance statement of a backend.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "options.h"
#include "outcome.h"

namespace kvasir::conformance {

struct Report {
  PluginFacts facts;
  bool opened = false;
  std::string refusal;            // why no case could run, when the plugin cannot even be opened
  std::vector<Outcome> outcomes;  // of the selected cases, in their order; none when refused or without a device
  double milliseconds = 0;

  bool failed() const {
    return !refusal.empty() || std::any_of(outcomes.begin(), outcomes.end(),
                                           [](const Outcome& outcome) { return outcome.result == Result::kFail; });
  }
};

struct Totals {
  size_t pass = 0, fail = 0, unsupported = 0, expected_failure = 0;

  void add(Result result);
  size_t cases() const { return pass + fail + unsupported + expected_failure; }
};

const char* result_name(Result result);

void print_case(const Case& item, const Outcome& outcome);
void print_report(const Report& report, const std::vector<Case>& cases, const Options& options);
// Throws when the file cannot be written.
void write_json(const Report& report, const std::vector<Case>& cases, const Options& options);

}  // namespace kvasir::conformance
