// SPDX-License-Identifier: MIT
//
// The command line of kvasir-backend-test.
#pragma once

#include <string>
#include <vector>

#include "suite/suite.h"

namespace kvasir::conformance {

struct Options {
  std::string plugin;
  Profile profile = Profile::kFull;
  std::vector<std::string> filters;   // globs; none = everything
  std::vector<std::string> expected;  // globs of cases that are known to fail
  std::string json;                   // file to write, "-" = standard output
  std::string variant;
  double timeout_s = 60;
  bool list = false;
  bool verbose = false;
};

// False when the program has to end at once with `exit_status` (--help, --version, or a usage error that was printed).
bool read_options(int argc, char** argv, Options* out, int* exit_status);

// "kvasir-backend-test 0.1.0"
const char* tool_version();

}  // namespace kvasir::conformance
