// SPDX-License-Identifier: MIT
//
// The kvasir tool: its command line, and what becomes of errors. One file per subcommand does the work.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "commands.h"
#include "common/kv.h"

namespace kvasir::cli {
namespace {

std::string version_text() {
  const uint32_t version = kv_version();
  return "kvasir " + std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 255) + "." +
         std::to_string(version & 255);
}

int usage_error(const char* sentence) {
  std::fprintf(stderr, "kvasir: %s\nTry kvasir --help, or kvasir COMMAND --help.\n", sentence);
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Kvasir runs transformer language models, one token at a time, with a key-value cache.", "kvasir");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  const Command commands[] = {add_generate(app), add_logits(app), add_tokenize(app), add_info(app),
                              add_devices(app),  add_trace(app),  add_bench(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help and --version
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const int code = command.run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw Failure(KV_IO, "cannot write to standard output");
    return code;
  }
  return usage_error("no command was given");
}

int run_caught(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    if (failure.status == KV_CANCELLED) return kInterrupted;
    std::fprintf(stderr, "kvasir: %s: %s\n", kv_status_name(failure.status), failure.what());
  } catch (const UsageError& error) {
    return usage_error(error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kvasir: %s\n", error.what());
  }
  return kFailure;
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) { return kvasir::cli::run_caught(argc, argv); }
