// SPDX-License-Identifier: MIT
//
// The subcommands. Each adds itself to the command line and returns what runs when it was chosen.
#pragma once

#include <functional>
#include <stdexcept>

namespace CLI {
class App;
}

namespace kvasir::cli {

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2, kInterrupted = 130 };

// A command line that says something impossible; what() is a sentence.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Command {
  CLI::App* app;
  std::function<int()> run;  // the exit code
};

Command add_generate(CLI::App& parent);
Command add_logits(CLI::App& parent);
Command add_tokenize(CLI::App& parent);
Command add_info(CLI::App& parent);
Command add_devices(CLI::App& parent);
Command add_trace(CLI::App& parent);
Command add_bench(CLI::App& parent);

}  // namespace kvasir::cli
