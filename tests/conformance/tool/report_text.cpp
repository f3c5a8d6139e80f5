// SPDX-License-Identifier: MIT
//
// The report for people: a line per group, the failures with their sentences, a summary.
#include <cstdio>
#include <map>

#include "catalogue.h"
#include "report.h"

namespace kvasir::conformance {
namespace {

void print_plugin(const Report& report, const Options& options) {
  std::printf("kvasir-backend-test %s, backend ABI %d draft %d, profile %s\n", tool_version(), KVB_ABI_MAJOR,
              KVB_ABI_DRAFT, profile_name(options.profile));
  std::printf("plugin  %s\n", options.plugin.c_str());
  if (!report.opened) return;
  std::printf("        %s %s\n", report.facts.name.c_str(), report.facts.version.c_str());
  if (report.facts.devices == 0) return;
  std::printf("device  %s (%s), variant %s\n\n", report.facts.device.c_str(), report.facts.driver.c_str(),
              report.facts.variant.c_str());
}

void print_totals(const char* name, const Totals& totals, double milliseconds) {
  std::printf("%-10s %6zu %6zu %12zu %16zu %9.2f s\n", name, totals.pass, totals.fail, totals.unsupported,
              totals.expected_failure, milliseconds / 1000);
}

void print_groups(const Report& report, const std::vector<Case>& cases) {
  std::vector<std::string> order;
  std::map<std::string, std::pair<Totals, double>> groups;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string group = group_of(cases[i]);
    if (groups.count(group) == 0) order.push_back(group);
    groups[group].first.add(report.outcomes[i].result);
    groups[group].second += report.outcomes[i].milliseconds;
  }
  std::printf("%-10s %6s %6s %12s %16s\n", "group", "pass", "fail", "unsupported", "expected failure");
  for (const std::string& group : order) print_totals(group.c_str(), groups[group].first, groups[group].second);
}

// The cases with one result, each with its reason.
void print_reasons(const Report& report, const std::vector<Case>& cases, Result result, const char* title) {
  bool first = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (report.outcomes[i].result != result) continue;
    if (first) std::printf("\n%s\n", title);
    first = false;
    std::printf("  %s: %s (%s)\n", cases[i].name.c_str(), report.outcomes[i].reason.c_str(),
                cases[i].obligations.c_str());
  }
}

void print_figures(const Report& report, const std::vector<Case>& cases) {
  bool first = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (group_of(cases[i]) != "perf") continue;
    for (const Figure& figure : report.outcomes[i].figures) {
      if (first) std::printf("\nfigures\n");
      first = false;
      std::printf("  %s: %s %.4g %s\n", cases[i].name.c_str(), figure.name.c_str(), figure.value, figure.unit.c_str());
    }
  }
}

}  // namespace

void Totals::add(Result result) {
  switch (result) {
    case Result::kPass: ++pass; return;
    case Result::kFail: ++fail; return;
    case Result::kUnsupported: ++unsupported; return;
    case Result::kExpectedFailure: ++expected_failure; return;
  }
}

const char* result_name(Result result) {
  switch (result) {
    case Result::kPass: return "pass";
    case Result::kFail: return "fail";
    case Result::kUnsupported: return "unsupported";
    case Result::kExpectedFailure: break;
  }
  return "expected failure";
}

void print_case(const Case& item, const Outcome& outcome) {
  std::printf("%-16s %8.1f ms  %s%s%s\n", result_name(outcome.result), outcome.milliseconds, item.name.c_str(),
              outcome.reason.empty() ? "" : ": ", outcome.reason.c_str());
  std::fflush(stdout);
}

void print_report(const Report& report, const std::vector<Case>& cases, const Options& options) {
  print_plugin(report, options);
  if (!report.refusal.empty()) {
    std::printf("\nFAILED\n  %s: %s (KVB-4)\n", kOpenCase, report.refusal.c_str());
    return;
  }
  if (report.facts.devices == 0) {
    std::printf("no device: %s\n", report.facts.no_device.c_str());
    return;
  }
  print_groups(report, cases);
  Totals totals;
  for (const Outcome& outcome : report.outcomes) totals.add(outcome.result);
  print_reasons(report, cases, Result::kUnsupported, "unsupported");
  print_reasons(report, cases, Result::kExpectedFailure, "failed as expected");
  print_figures(report, cases);
  print_reasons(report, cases, Result::kFail, "FAILED");
  std::printf("\n");
  print_totals("all", totals, report.milliseconds);
  std::printf("%s\n", report.failed() ? "does not conform" : "conforms");
}

}  // namespace kvasir::conformance
