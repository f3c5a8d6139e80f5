// SPDX-License-Identifier: MIT
//
// kvasir-backend-test: the conformance suite for plugins of the backend ABI. Here: from the command line to the exit
// status. 0: nothing failed; 1: something did; 2: the command line cannot be understood or a file cannot be written.
#include <cstdio>
#include <exception>

#include "catalogue.h"
#include "options.h"
#include "report.h"
#include "supervisor.h"

namespace kvasir::conformance {
namespace {

int list_cases(const std::vector<Case>& cases) {
  for (const Case& item : cases) {
    std::printf("%s\t%s\t%s\n", item.name.c_str(), profile_name(item.profile), item.obligations.c_str());
  }
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  int exit_status = 0;
  if (!read_options(argc, argv, &options, &exit_status)) return exit_status;
  const std::vector<Case> cases = select(all_cases(), options);
  if (options.list) return list_cases(cases);
  if (cases.empty()) {
    std::fprintf(stderr, "kvasir-backend-test: no case matches the filter\n");
    return 2;
  }
  const bool text = options.json != "-";
  const Report report = run_cases(cases, options, [&](const Case& item, const Outcome& outcome) {
    if (text && options.verbose) print_case(item, outcome);
  });
  if (text) print_report(report, cases, options);
  if (!options.json.empty()) write_json(report, cases, options);
  return report.failed() ? 1 : 0;
}

}  // namespace
}  // namespace kvasir::conformance

int main(int argc, char** argv) {
  try {
    const int status = kvasir::conformance::run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    std::fprintf(stderr, "kvasir-backend-test: cannot write to standard output\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kvasir-backend-test: %s\n", error.what());
    return 2;
  }
}
