// SPDX-License-Identifier: MIT
//
// kvasir bench: speed of prefill and decode at several depths of the cache.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "bench_report.h"
#include "commands.h"
#include "interrupt.h"
#include "session.h"

namespace kvasir::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kBundledModel = "examples/demo_model/demo.gguf";

struct Flags {
  std::string model;
  DeviceFlags device;
  std::vector<uint64_t> depths = {0, 512};
  uint64_t prompt = 512;
  uint64_t tokens = 32;
  uint32_t repeat = 5;
  bool machine = false;
  bool json = false;
};

class Bench {
 public:
  Bench(const Flags& flags, kv_model* model, kv_context* context, const kv_cancel* cancel)
      : flags_(flags), vocab_(get<kv_model_info>(kv_model_get_info, model).vocab), context_(context) {
    options_.cancel = cancel;
  }
  std::vector<BenchRow> run();

 private:
  // Any ids do: the speed does not depend on them.
  int32_t token(uint64_t position) const { return static_cast<int32_t>((position * 7919 + 13) % vocab_); }
  void prefill(uint64_t count);
  void decode(uint64_t count);
  void truncate(uint64_t length) { call(kv_sequence_truncate, context_, KV_DEFAULT_SEQUENCE, length); }
  uint64_t length() const;
  BenchRow measure(bool prefill, uint64_t depth);

  const Flags& flags_;
  uint32_t vocab_;
  kv_context* context_;
  kv_step_options options_ = sized<kv_step_options>();
};

uint64_t Bench::length() const {
  uint64_t length = 0;
  call(kv_sequence_length, context_, KV_DEFAULT_SEQUENCE, &length);
  return length;
}

void Bench::prefill(uint64_t count) {
  const uint64_t start = length();
  std::vector<int32_t> tokens;
  for (uint64_t i = 0; i < count; i++) tokens.push_back(token(start + i));
  auto result = sized<kv_step_result>();
  if (count != 0) call(kv_prefill, context_, KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), &options_, &result);
}

void Bench::decode(uint64_t count) {
  const uint64_t start = length();
  for (uint64_t i = 0; i < count; i++) {
    const kv_decode_input input = {KV_DEFAULT_SEQUENCE, token(start + i), 0};
    auto result = sized<kv_step_result>();
    call(kv_decode_step, context_, &input, size_t{1}, &options_, &result);
  }
}

// One run to warm up, then the measured ones, each from the same depth.
BenchRow Bench::measure(bool is_prefill, uint64_t depth) {
  const uint64_t count = is_prefill ? flags_.prompt : flags_.tokens;
  std::vector<double> speeds;
  for (uint32_t r = 0; r <= flags_.repeat; r++) {
    truncate(depth);
    const Clock::time_point start = Clock::now();
    if (is_prefill) {
      prefill(count);
    } else {
      decode(count);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (r != 0) speeds.push_back(static_cast<double>(count) / seconds);
  }
  truncate(depth);
  return {is_prefill, depth, count, spread_of(speeds), 0};
}

std::vector<BenchRow> Bench::run() {
  std::vector<BenchRow> rows;
  for (const uint64_t depth : flags_.depths) {
    truncate(std::min(length(), depth));
    prefill(depth - length());
    if (flags_.prompt != 0) rows.push_back(measure(true, depth));
    if (flags_.tokens != 0) rows.push_back(measure(false, depth));
  }
  return rows;
}

// Weights read for one token: all but the embedding table, of which one row is read, unless it is the output head too.
uint64_t weight_bytes(const kv_model* model) {
  const auto info = get<kv_model_info>(kv_model_get_info, model);
  uint64_t embedding = 0;
  bool has_head = false;
  for (size_t t = 0; t < info.tensors; t++) {
    const auto tensor = get<kv_tensor_info>(kv_model_tensor_at, model, t);
    if (tensor.name == std::string("token_embd.weight")) embedding = tensor.bytes;
    if (tensor.name == std::string("output.weight")) has_head = true;
  }
  return info.tensor_bytes - (has_head ? embedding : 0);
}

BenchReport measure_model(const Flags& flags, const std::string& path) {
  BenchReport report;
  report.model = path;
  const kv_cancel* cancel = catch_interrupt();
  const RuntimePtr runtime = open_runtime();
  const ModelPtr model = open_model(runtime.get(), path, cancel);
  kv_context_options options = flags.device.context_options();
  if (options.max_tokens == 0) {
    const uint64_t deepest = flags.depths.empty() ? 0 : *std::max_element(flags.depths.begin(), flags.depths.end());
    options.max_tokens = deepest + std::max({flags.prompt, flags.tokens, uint64_t{1}});
  }
  report.cache_bytes_per_token = get<kv_memory_plan>(kv_context_plan, model.get(), &options).bytes_per_token;
  report.weight_bytes = weight_bytes(model.get());
  report.memory = measure_memory_speed(flags.device.threads);
  const ContextPtr context = open_context(model.get(), options, cancel);
  report.context = describe_context(context.get());
  report.rows = Bench(flags, model.get(), context.get(), cancel).run();
  for (BenchRow& row : report.rows) {
    const double cached = static_cast<double>(row.depth) + static_cast<double>(row.tokens) / 2;
    row.bytes_per_token =
        static_cast<double>(report.weight_bytes) + cached * static_cast<double>(report.cache_bytes_per_token);
  }
  return report;
}

int run_bench(const Flags& flags) {
  if (flags.machine) {
    (flags.json ? print_machine_json : print_machine)(measure_memory_speed(flags.device.threads));
    return kSuccess;
  }
  if (flags.repeat == 0) throw UsageError("--repeat must be at least 1");
  std::string path = flags.model;
  if (path.empty() && std::filesystem::exists(kBundledModel)) path = kBundledModel;
  if (path.empty()) throw UsageError("give a model with -m");
  const BenchReport report = measure_model(flags, path);
  (flags.json ? print_bench_json : print_bench)(report);
  return kSuccess;
}

}  // namespace

Command add_bench(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("bench", "speed of prefill and decode, next to the speed of memory");
  add_model_flag(app, flags->model)->description("model file (default: the bundled one, from the project's folder)");
  app.add_option("--prompt", flags->prompt, "tokens of a prefill; 0 = no prefill")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--depth", flags->depths, "tokens in the cache before: 0,512")
      ->delimiter(',')
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--tokens", flags->tokens, "tokens of a decode run; 0 = no decode")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--repeat", flags->repeat, "measured runs; median, least and most are shown")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--machine", flags->machine, "only the speed of memory");
  app.add_flag("--json", flags->json, "as JSON");
  add_device_flags(app, flags->device);
  return {&app, [flags] { return run_bench(*flags); }};
}

}  // namespace kvasir::cli
