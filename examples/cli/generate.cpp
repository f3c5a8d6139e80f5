// SPDX-License-Identifier: MIT
//
// kvasir generate: continues a text, token by token.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

#include "commands.h"
#include "interrupt.h"
#include "progress.h"
#include "session.h"
#include "text.h"

namespace kvasir::cli {
namespace {

using Clock = std::chrono::steady_clock;
using ull = unsigned long long;

struct Flags {
  std::string model;
  DeviceFlags device;
  PromptFlags prompt;
  kv_sampler_options sampling = sized<kv_sampler_options>();
  CLI::Option* seed = nullptr;
  CLI::Option* top_p = nullptr;
  uint64_t tokens = 200;
  bool stats = false;
  bool no_echo = false;
};

enum class End { kTokens, kModel, kFull, kInterrupt };

struct Counts {
  size_t prompt_tokens = 0;
  size_t tokens = 0;  // written
  size_t steps = 0;
  Clock::duration prefill{}, decode{};
};

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

class Generation {
 public:
  explicit Generation(const Flags& flags)
      : flags_(flags),
        cancel_(catch_interrupt()),
        runtime_(open_runtime()),
        model_(open_model(runtime_.get(), flags.model, cancel_)),
        tokenizer_(tokenizer_of(model_.get())),
        stream_(make<StreamPtr>(kv_text_stream_create, tokenizer_, uint32_t{0})),
        sampler_(make<SamplerPtr>(kv_sampler_create, &flags.sampling)) {}

  int run();

 private:
  void open(size_t prompt_tokens);
  void prefill(const std::vector<int32_t>& tokens);
  End write_tokens();
  End step(int32_t token);
  void write(const char* text, size_t length) {
    if (length == 0) return;
    std::fwrite(text, 1, length, stdout);
    std::fflush(stdout);
    line_open_ = text[length - 1] != '\n';
  }
  void print_stats() const;

  const Flags& flags_;
  const kv_cancel* cancel_;
  RuntimePtr runtime_;
  ModelPtr model_;
  const kv_tokenizer* tokenizer_;
  StreamPtr stream_;
  SamplerPtr sampler_;
  ContextPtr context_;
  kv_context_options options_ = {};
  uint64_t trained_ = 0;                           // tokens the model was trained for; 0 = unknown
  kv_step_result last_ = sized<kv_step_result>();  // rows: the logits of the next token
  Counts counts_;
  bool line_open_ = false;
};

// The model's context length, or as many tokens as were asked for if that is more.
void Generation::open(size_t prompt_tokens) {
  trained_ = get<kv_model_info>(kv_model_get_info, model_.get()).context_length;
  options_ = flags_.device.context_options();
  const bool endless = flags_.tokens == 0 || flags_.tokens > UINT32_MAX;
  if (options_.max_tokens == 0 && !endless && prompt_tokens + flags_.tokens > trained_) {
    options_.max_tokens = prompt_tokens + flags_.tokens;
  }
  context_ = open_context(model_.get(), options_, cancel_);
}

void Generation::prefill(const std::vector<int32_t>& tokens) {
  Progress progress("reading the prompt");
  kv_step_options options = sized<kv_step_options>();
  options.cancel = cancel_;
  options.progress = progress.callback();
  options.progress_user = progress.user();
  const Clock::time_point start = Clock::now();
  call(kv_prefill, context_.get(), KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), &options, &last_);
  counts_.prefill = Clock::now() - start;
  counts_.prompt_tokens = tokens.size();
  for (const int32_t token : tokens) call(kv_sampler_accept, sampler_.get(), token);
}

// Appends a token, which gives the logits of the next one.
End Generation::step(int32_t token) {
  const kv_decode_input input = {KV_DEFAULT_SEQUENCE, token, 0};
  kv_step_options options = sized<kv_step_options>();
  options.cancel = cancel_;
  const Clock::time_point start = Clock::now();
  try {
    call(kv_decode_step, context_.get(), &input, size_t{1}, &options, &last_);
  } catch (const Failure& failure) {
    if (failure.status == KV_CONTEXT_FULL) return End::kFull;
    if (failure.status == KV_CANCELLED) return End::kInterrupt;
    throw;
  }
  counts_.decode += Clock::now() - start;
  counts_.steps++;
  return End::kTokens;
}

End Generation::write_tokens() {
  while (flags_.tokens == 0 || counts_.tokens < flags_.tokens) {
    if (kv_cancel_is_set(cancel_) != 0) return End::kInterrupt;
    auto sample = sized<kv_sample>();
    call(kv_sampler_sample, sampler_.get(), last_.rows, last_.width, &sample);
    if (kv_token_ends_generation(tokenizer_, sample.token) != 0) return End::kModel;
    call(kv_sampler_accept, sampler_.get(), sample.token);
    const char* text = nullptr;
    size_t length = 0;
    call(kv_text_stream_push, stream_.get(), sample.token, &text, &length);
    write(text, length);
    if (++counts_.tokens == flags_.tokens) break;  // nobody needs the logits after the last token
    if (const End end = step(sample.token); end != End::kTokens) return end;
  }
  return End::kTokens;
}

void Generation::print_stats() const {
  const auto info = get<kv_context_info>(kv_context_get_info, context_.get());
  const auto plan = get<kv_memory_plan>(kv_context_plan, model_.get(), &options_);
  const auto line = [](const char* name, const std::string& text) {
    std::fprintf(stderr, "%-11s %s\n", name, text.c_str());
  };
  const auto speed = [](size_t tokens, Clock::duration time) {
    const double s = seconds(time);
    return format("%zu tokens in %.1f ms, %.1f tokens/s", tokens, 1e3 * s,
                  s > 0 ? static_cast<double>(tokens) / s : 0.0);
  };
  std::fprintf(stderr, "\n");
  line("device", describe_context(context_.get()));
  line("prefill", speed(counts_.prompt_tokens, counts_.prefill));
  line("decode", speed(counts_.steps, counts_.decode));
  line("memory", "weights " + bytes_text(plan.weight_bytes) + ", cache " + bytes_text(info.cache_bytes) + " (" +
                     bytes_text(plan.bytes_per_token) + " per token, " + std::to_string(info.pages_used) +
                     " pages of " + std::to_string(info.page_tokens) + " tokens), scratch " +
                     bytes_text(plan.scratch_bytes));
  line("context", format("%llu of %llu tokens used", ull{last_.length}, ull{info.max_tokens}));
  line("counters", format("%llu tokens computed, %llu projections computed, %llu avoided", ull{info.tokens_computed},
                          ull{info.projections}, ull{info.projections_avoided}));
  line("seed", std::to_string(flags_.sampling.seed));
}

int Generation::run() {
  const std::string prompt = flags_.prompt.read();
  const std::vector<int32_t> tokens = tokenize(tokenizer_, prompt, KV_TOKENIZE_ADD_SPECIAL);
  if (tokens.empty()) throw UsageError("the prompt is empty, and this model has no token to begin a text with");
  open(tokens.size());
  prefill(tokens);
  if (!flags_.no_echo) write(prompt.data(), prompt.size());
  const End end = write_tokens();
  const char* text = nullptr;
  size_t length = 0;
  call(kv_text_stream_flush, stream_.get(), &text, &length);
  write(text, length);
  if (line_open_) write("\n", 1);
  if (end == End::kFull) {
    std::fprintf(stderr, "kvasir: stopped, the context is full (%llu tokens)\n", ull{last_.length});
  }
  if (trained_ != 0 && last_.length > trained_) {
    std::fprintf(stderr, "kvasir: note: the text is longer than the %llu tokens the model was trained for\n",
                 ull{trained_});
  }
  if (flags_.stats) print_stats();
  return end == End::kInterrupt ? kInterrupted : kSuccess;
}

void add_sampling_flags(CLI::App& app, Flags& flags) {
  kv_sampler_options& s = flags.sampling;
  s.temperature = 0.8F;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->type_name("X")->group("Sampling");
  };
  add("--temp", s.temperature, "temperature; 0 = always the likeliest token")
      ->check(CLI::NonNegativeNumber.description(""))
      ->capture_default_str();
  add("--top-k", s.top_k, "only the K likeliest tokens; 0 = all")->type_name("K");
  flags.top_p = add("--top-p", s.top_p, "the likeliest tokens that together have probability X")
                    ->check(CLI::Range(0.0, 1.0).description(""));
  add("--min-p", s.min_p, "only tokens at least X times as likely as the likeliest")
      ->check(CLI::Range(0.0, 1.0).description(""));
  add("--repeat-penalty", s.repetition_penalty, "above 1: tokens already in the text become less likely");
  add("--frequency-penalty", s.frequency_penalty, "subtracted from a logit for each time its token was seen");
  add("--presence-penalty", s.presence_penalty, "subtracted from a logit when its token was seen");
  flags.seed = add("--seed", s.seed, "seed of the random choices (default: a new one each time, see --stats)")
                   ->check(whole_number)
                   ->type_name("N");
}

int run_generate(Flags& flags) {
  flags.sampling.use_top_p = flags.top_p->count() != 0 ? 1 : 0;
  if (flags.seed->count() == 0) flags.sampling.seed = std::random_device()();
  return Generation(flags).run();
}

}  // namespace

Command add_generate(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("generate", "continue a text");
  add_model_flag(app, flags->model)->required();
  add_prompt_flags(app, flags->prompt);
  app.add_option("-n,--tokens", flags->tokens, "tokens to write; 0 = until the model ends or the context is full")
      ->check(whole_number)
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--stats", flags->stats, "speed, memory and counters, on standard error");
  app.add_flag("--no-echo", flags->no_echo, "do not repeat the prompt");
  add_sampling_flags(app, *flags);
  add_device_flags(app, flags->device);
  return {&app, [flags] { return run_generate(*flags); }};
}

}  // namespace kvasir::cli
