// SPDX-License-Identifier: MIT
//
// Flags that several subcommands share: model, device, cache and compute; where a prompt comes from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kvasir/kvasir.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kvasir::cli {

// Cache types by their names on the command line.
const std::map<std::string, uint32_t>& cache_types();
std::string cache_type_name(uint32_t type);

struct DeviceFlags {
  std::string device = "auto";
  std::string variant;
  uint32_t kv_type = KV_TYPE_DEFAULT;
  uint32_t k_type = KV_TYPE_DEFAULT;
  uint32_t v_type = KV_TYPE_DEFAULT;
  uint32_t compute = KV_COMPUTE_DEFAULT;
  uint32_t threads = 0;
  uint64_t max_tokens = 0;
  uint32_t batch = 0;

  kv_context_options context_options() const;  // points into this object
};
void add_device_flags(CLI::App& app, DeviceFlags& flags);

// Of an option that takes a 64-bit number: digits alone, and no more than fit. The parser itself lets others wrap.
std::string whole_number(const std::string& text);

CLI::Option* add_model_flag(CLI::App& app, std::string& path);

// Text from -p, from --file, or from standard input.
struct PromptFlags {
  std::string text;
  std::string file;
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;

  std::string read() const;
};
void add_prompt_flags(CLI::App& app, PromptFlags& flags);

}  // namespace kvasir::cli
