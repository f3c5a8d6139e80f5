// SPDX-License-Identifier: MIT
//
// Names and help of the shared flags, and reading of prompts.
#include "options.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "commands.h"
#include "common/kv.h"

namespace kvasir::cli {
namespace {

std::string read_all(std::FILE* file) {
  std::string text;
  char buffer[65536];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, file)) != 0;) text.append(buffer, count);
  return text;
}

// Turns a name into its number, or says which names there are. Keeps the numbers out of the help.
CLI::Validator one_of(const std::map<std::string, uint32_t>& choices) {
  const auto look_up = [choices](std::string& value) {
    if (const auto found = choices.find(CLI::detail::to_lower(value)); found != choices.end()) {
      value = std::to_string(found->second);
      return std::string();
    }
    std::string names;
    for (const auto& [name, number] : choices) names += (names.empty() ? "" : ", ") + name;
    return "'" + value + "' is not one of " + names;
  };
  return {look_up, ""};
}

void add_type_flag(CLI::App& app, const std::string& name, uint32_t& type, const std::string& help) {
  app.add_option(name, type, help)->transform(one_of(cache_types()))->type_name("TYPE")->group("Device");
}

}  // namespace

std::string whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? ""
                                                                  : "'" + text + "' is not a whole number below 2^64";
}

const std::map<std::string, uint32_t>& cache_types() {
  static const std::map<std::string, uint32_t> types = {
      {"f32", KV_TYPE_F32}, {"f16", KV_TYPE_F16}, {"bf16", KV_TYPE_BF16}, {"q8_0", KV_TYPE_Q8_0}};
  return types;
}

std::string cache_type_name(uint32_t type) {
  for (const auto& [name, value] : cache_types()) {
    if (value == type) return name;
  }
  return kv_type_name(type);
}

kv_context_options DeviceFlags::context_options() const {
  kv_context_options options = sized<kv_context_options>();
  options.device = device.c_str();
  options.variant = variant.empty() ? nullptr : variant.c_str();
  options.k_type = k_type != 0 ? k_type : kv_type;
  options.v_type = v_type != 0 ? v_type : kv_type;
  options.compute_mode = compute;
  options.threads = threads;
  options.max_tokens = max_tokens;
  options.max_batch_tokens = batch;
  return options;
}

void add_device_flags(CLI::App& app, DeviceFlags& flags) {
  const std::map<std::string, uint32_t> modes = {{"exact", KV_COMPUTE_EXACT}, {"fast", KV_COMPUTE_FAST}};
  app.add_option("--device", flags.device, "cpu, ref, vulkan, cuda, with :n the n-th one; auto = the best")
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Device");
  app.add_option("--variant", flags.variant, "code path of the backend, e.g. scalar or avx2")
      ->type_name("NAME")
      ->group("Device");
  add_type_flag(app, "--kv-type", flags.kv_type, "cache type of keys and values: f32, f16, bf16, q8_0");
  add_type_flag(app, "--k-type", flags.k_type, "cache type of keys");
  add_type_flag(app, "--v-type", flags.v_type, "cache type of values");
  app.add_option("--compute", flags.compute, "exact or fast (default: fast for quantised models, else exact)")
      ->transform(one_of(modes))
      ->type_name("MODE")
      ->group("Device");
  app.add_option("--threads", flags.threads, "CPU threads; 0 = as many as the process may use")
      ->type_name("N")
      ->group("Device");
  app.add_option("--ctx", flags.max_tokens, "tokens the cache can hold; 0 = the model's context length")
      ->check(whole_number)
      ->type_name("N")
      ->group("Device");
  app.add_option("--batch", flags.batch, "tokens computed at once; 0 = what suits the device")
      ->type_name("N")
      ->group("Device");
}

CLI::Option* add_model_flag(CLI::App& app, std::string& path) {
  return app.add_option("-m,--model", path, "model file (GGUF)")->type_name("FILE");
}

std::string PromptFlags::read() const {
  if (text_option->count() != 0 && file_option->count() != 0) throw UsageError("give --prompt or --file, not both");
  if (text_option->count() != 0) return text;
  if (file_option->count() == 0) return read_all(stdin);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "rb"), std::fclose);
  if (opened == nullptr) {
    throw Failure(errno == ENOENT ? KV_NOT_FOUND : KV_IO, ("'" + file + "': " + std::strerror(errno)).c_str());
  }
  std::string content = read_all(opened.get());
  if (std::ferror(opened.get()) != 0) throw Failure(KV_IO, ("'" + file + "' cannot be read").c_str());
  return content;
}

void add_prompt_flags(CLI::App& app, PromptFlags& flags) {
  flags.text_option =
      app.add_option("-p,--prompt", flags.text, "the text (default: standard input)")->type_name("TEXT");
  flags.file_option = app.add_option("--file", flags.file, "the text from a file")->type_name("FILE");
}

}  // namespace kvasir::cli
