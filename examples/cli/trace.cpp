// SPDX-License-Identifier: MIT
//
// kvasir trace: the intermediates of one step, as tables.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "commands.h"
#include "interrupt.h"
#include "session.h"
#include "text.h"
#include "trace_example.h"

namespace kvasir::cli {
namespace {

using ull = unsigned long long;

struct Flags {
  std::string model;
  DeviceFlags device;
  PromptFlags prompt;
  CLI::Option* layer_option = nullptr;
  uint32_t layer = 0;
  uint32_t max_columns = 8;
  int example = 0;
};

// Prints records as they come. Rows of scores and weights arrive one by one; they are kept until the attention is
// complete, and then printed head by head.
class Printer {
 public:
  explicit Printer(const Flags& flags) : flags_(flags), filtered_(flags.layer_option->count() != 0) {}

  static void receive(void* self, const kv_trace_record* record) { static_cast<Printer*>(self)->take(*record); }

 private:
  struct QueryRow {
    uint64_t position, first_position;
    std::vector<float> data;
  };

  void take(const kv_trace_record& record);
  void print_attention();
  void print_row(uint64_t position, const float* data, uint32_t width, uint64_t first_position = 0) const;

  const Flags& flags_;
  bool filtered_;
  uint32_t layer_ = 0;
  std::map<std::pair<std::string, uint32_t>, std::vector<QueryRow>> attention_;  // by name and head
};

void Printer::take(const kv_trace_record& record) {
  const bool outside = record.layer == UINT32_MAX;
  if (filtered_ && (outside || record.layer != flags_.layer)) return;
  const std::string name = record.name;
  if (name == "scores" || name == "weights") {
    layer_ = record.layer;
    attention_[{name, record.head}].push_back(
        {record.position, record.first_position, {record.data, record.data + record.width}});
    return;
  }
  print_attention();
  std::printf("\n%s%s  %u x %u\n", outside ? "" : format("layer %u  ", record.layer).c_str(), record.name, record.rows,
              record.width);
  for (uint32_t r = 0; r < record.rows; r++) {
    print_row(record.position + r, record.data + size_t{r} * record.width, record.width);
  }
}

void Printer::print_attention() {
  for (const auto& [key, rows] : attention_) {
    std::printf("\nlayer %u  %s of head %u, one column per earlier position\n", layer_, key.first.c_str(), key.second);
    for (const QueryRow& row : rows) {
      print_row(row.position, row.data.data(), static_cast<uint32_t>(row.data.size()), row.first_position);
    }
  }
  attention_.clear();
}

void Printer::print_row(uint64_t position, const float* data, uint32_t width, uint64_t first_position) const {
  const uint32_t shown = flags_.max_columns == 0 ? width : std::min(width, flags_.max_columns);
  std::string line = format("%6llu |", ull{position});
  for (uint32_t c = 0; c < shown; c++) line += format(" %9.4f", static_cast<double>(data[c]));
  if (shown < width) line += "  ...";
  if (first_position != 0) line += format("  (from position %llu on)", ull{first_position});
  std::printf("%s\n", line.c_str());
}

int run_trace(const Flags& flags) {
  if (flags.example != 0) return run_example(flags.example, flags.device);
  if (flags.model.empty()) throw UsageError("give a model with -m, or --example 1, 2 or 3");
  const kv_cancel* cancel = catch_interrupt();
  const Session session(flags.model, flags.device, cancel);
  const auto info = get<kv_model_info>(kv_model_get_info, session.model.get());
  if (flags.layer_option->count() != 0 && flags.layer >= info.layers) {
    throw UsageError(format("--layer %u: the model has layers 0 to %u", flags.layer, info.layers - 1));
  }
  const kv_tokenizer* tokenizer = tokenizer_of(session.model.get());
  const std::vector<int32_t> tokens = tokenize(tokenizer, flags.prompt.read(), KV_TOKENIZE_ADD_SPECIAL);
  Table table({">position", ">token", "text"});
  for (size_t i = 0; i < tokens.size(); i++) {
    table.add(
        {std::to_string(i), std::to_string(tokens[i]), "\"" + printable(token_text(tokenizer, tokens[i])) + "\""});
  }
  table.print();
  Printer printer(flags);
  call(kv_context_set_trace, session.context.get(), Printer::receive, static_cast<void*>(&printer));
  auto options = sized<kv_step_options>();
  options.cancel = cancel;
  auto result = sized<kv_step_result>();
  call(kv_prefill, session.context.get(), KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), &options, &result);
  return kSuccess;
}

}  // namespace

Command add_trace(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("trace", "what a step computes, number by number");
  add_model_flag(app, flags->model);
  add_prompt_flags(app, flags->prompt);
  app.add_option("--example", flags->example, "a worked example instead of a model: 1, 2 or 3")
      ->check(CLI::Range(1, 3).description(""))
      ->type_name("N");
  flags->layer_option = app.add_option("--layer", flags->layer, "only this layer, counted from 0")->type_name("N");
  app.add_option("--max-columns", flags->max_columns, "numbers per row; 0 = all")
      ->type_name("N")
      ->capture_default_str();
  add_device_flags(app, flags->device);
  return {&app, [flags] { return run_trace(*flags); }};
}

}  // namespace kvasir::cli
