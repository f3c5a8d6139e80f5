// SPDX-License-Identifier: MIT
//
// kvasir logits: the scores of the next token, as raw floats in a file or as the likeliest tokens.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

#include "commands.h"
#include "interrupt.h"
#include "session.h"
#include "text.h"

namespace kvasir::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "--out promises little-endian floats");

struct Flags {
  std::string model;
  DeviceFlags device;
  PromptFlags prompt;
  std::vector<int32_t> tokens;
  std::string out;
  bool no_bos = false;
  bool all = false;
  uint32_t top = 10;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void fail_to_write(const std::string& path) {
  throw Failure(KV_IO, ("cannot write '" + path + "': " + std::strerror(errno)).c_str());
}

// Takes the rows as the library hands them out. The first problem is kept: a callback must not throw.
class Rows {
 public:
  Rows(const Flags& flags, const kv_tokenizer* tokenizer)
      : flags_(flags), tokenizer_(tokenizer), file_(nullptr, std::fclose) {
    if (flags.out.empty()) return;
    file_.reset(std::fopen(flags.out.c_str(), "wb"));
    if (file_ == nullptr) fail_to_write(flags.out);
  }

  static void receive(void* self, kv_sequence, uint64_t position, const float* row, uint32_t width) {
    static_cast<Rows*>(self)->take(position, row, width);
  }
  void take(uint64_t position, const float* row, uint32_t width) {
    if (file_ != nullptr) {
      ok_ = ok_ && std::fwrite(row, sizeof(float), width, file_.get()) == width;
    } else {
      print_top(position, row, width);
    }
  }
  void finish() {
    if (file_ != nullptr && (std::fclose(file_.release()) != 0 || !ok_)) fail_to_write(flags_.out);
  }

 private:
  void print_top(uint64_t position, const float* row, uint32_t width) const;

  const Flags& flags_;
  const kv_tokenizer* tokenizer_;  // NULL when the model has none
  File file_;
  bool ok_ = true;
};

void Rows::print_top(uint64_t position, const float* row, uint32_t width) const {
  std::vector<uint32_t> order(width);
  std::iota(order.begin(), order.end(), 0U);
  const uint32_t count = std::min(flags_.top, width);
  const auto better = [row](uint32_t a, uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; };
  std::partial_sort(order.begin(), order.begin() + count, order.end(), better);
  const double largest = count != 0 ? row[order[0]] : 0;
  double sum = 0;
  for (uint32_t v = 0; v < width; v++) sum += std::exp(row[v] - largest);

  std::printf("after position %llu:\n", static_cast<unsigned long long>(position));
  Table table({">token", ">logit", ">probability", "text"});
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t v = order[i];
    const std::string text = tokenizer_ != nullptr ? token_text(tokenizer_, static_cast<int32_t>(v)) : "";
    table.add({std::to_string(v), format("%.5f", static_cast<double>(row[v])),
               format("%.4f", std::exp(row[v] - largest) / sum), "\"" + printable(text) + "\""});
  }
  table.print();
}

int run_logits(const Flags& flags) {
  const bool has_prompt = flags.prompt.text_option->count() + flags.prompt.file_option->count() != 0;
  if (has_prompt && !flags.tokens.empty()) throw UsageError("give --tokens or a prompt, not both");
  const kv_cancel* cancel = catch_interrupt();
  const Session session(flags.model, flags.device, cancel);
  std::vector<int32_t> tokens = flags.tokens;
  if (tokens.empty()) {
    const uint32_t special = flags.no_bos ? 0 : KV_TOKENIZE_ADD_SPECIAL;
    tokens = tokenize(tokenizer_of(session.model.get()), flags.prompt.read(), special);
  }
  Rows rows(flags, kv_model_tokenizer(session.model.get()));
  auto options = sized<kv_step_options>();
  options.cancel = cancel;
  options.outputs = flags.all ? KV_OUTPUT_ALL : KV_OUTPUT_LAST;
  options.row = flags.all ? Rows::receive : nullptr;
  options.row_user = &rows;
  auto result = sized<kv_step_result>();
  call(kv_prefill, session.context.get(), KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), &options, &result);
  if (!flags.all) rows.take(result.length - 1, result.rows, result.width);
  rows.finish();
  return kSuccess;
}

}  // namespace

Command add_logits(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("logits", "scores of the token that follows a text");
  add_model_flag(app, flags->model)->required();
  app.add_option("--tokens", flags->tokens, "token ids instead of a text: 1,2,3")->delimiter(',')->type_name("IDS");
  add_prompt_flags(app, flags->prompt);
  app.add_flag("--no-bos", flags->no_bos, "do not add the token that begins a text");
  app.add_flag("--all", flags->all, "after every token, not only the last one");
  app.add_option("--out", flags->out, "write the scores to a file: little-endian float32, [tokens][vocabulary]")
      ->type_name("FILE");
  app.add_option("--top", flags->top, "how many tokens to print")->type_name("N")->capture_default_str();
  add_device_flags(app, flags->device);
  return {&app, [flags] { return run_logits(*flags); }};
}

}  // namespace kvasir::cli
