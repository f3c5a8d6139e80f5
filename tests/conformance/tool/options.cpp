// SPDX-License-Identifier: MIT
//
// Reading the command line, and files with names of cases that are expected to fail.
#include "options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

namespace kvasir::conformance {
namespace {

constexpr char kDescription[] =
    "Runs the conformance suite of Kvasir's backend ABI against a plugin.\n"
    "It needs nothing but the plugin: no model, no other file. Exit status 0: nothing failed.";

// One glob per line; empty lines and lines that begin with # do not count.
std::vector<std::string> read_globs(const std::string& path) {
  std::vector<std::string> globs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (!line.empty() && line.front() != '#') globs.push_back(line);
  }
  return globs;
}

// Each argument is a file of globs or a glob.
std::vector<std::string> expand(const std::vector<std::string>& arguments) {
  std::vector<std::string> globs;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(argument, ignored)) {
      const std::vector<std::string> lines = read_globs(argument);
      globs.insert(globs.end(), lines.begin(), lines.end());
    } else {
      globs.push_back(argument);
    }
  }
  return globs;
}

}  // namespace

const char* tool_version() { return KV_CONFORMANCE_VERSION; }

bool read_options(int argc, char** argv, Options* out, int* exit_status) {
  CLI::App app(kDescription, "kvasir-backend-test");
  Options options;
  std::string profile = "full";
  std::vector<std::string> expected;
  app.set_version_flag("--version", std::string("kvasir-backend-test ") + tool_version());
  auto* plugin = app.add_option("plugin", options.plugin, "The plugin, libkvasir_backend_NAME.v0.so");
  app.add_option("--profile", profile, "core: what every backend must pass; full: everything (default)")
      ->check(CLI::IsMember({"core", "full"}));
  app.add_option("--filter", options.filters, "Run only cases whose name matches this glob (may be given again)")
      ->allow_extra_args(false);
  app.add_option("--expect-fail", expected, "Globs, or files of globs, of cases that are known to fail")
      ->allow_extra_args(false);
  app.add_option("--json", options.json, "Write the conformance statement to this file (- = standard output)");
  app.add_option("--variant", options.variant, "Force a variant of the device, such as an instruction set");
  app.add_option("--timeout", options.timeout_s, "Seconds a case may take (default 60)")
      ->check(CLI::Range(0.1, 86400.0))
      ->check([](const std::string& text) { return text.find_first_of("nN") == text.npos ? "" : "not a number"; });
  auto* list = app.add_flag("--list", options.list, "List the cases with their profile and obligations; run nothing");
  app.add_flag("-v,--verbose", options.verbose, "A line per case");
  try {
    app.parse(argc, argv);
    if (plugin->count() == 0 && list->count() == 0) throw CLI::RequiredError("plugin");
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    *exit_status = code == 0 ? 0 : 2;
    return false;
  }
  options.profile = profile == "core" ? Profile::kCore : Profile::kFull;
  options.expected = expand(expected);
  *out = std::move(options);
  return true;
}

}  // namespace kvasir::conformance
