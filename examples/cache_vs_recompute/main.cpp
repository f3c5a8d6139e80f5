// SPDX-License-Identifier: MIT
//
// What the key-value cache is for. Generates the same text twice, with the cache and by computing every token again at
// every step, checks that both give the same bits, and shows the time per token against the length of the text.
//   cache_vs_recompute model.gguf [tokens] [plot.svg] [device]
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/kv.h"
#include "plot.h"

namespace kvasir::example {
namespace {

using namespace cli;  // the wrapper in ../cli/kv.h
using ull = unsigned long long;

constexpr const char* kPrompt = "Once upon a time";
constexpr int kRuns = 5;  // the fastest of several runs counts
constexpr size_t kTableRows = 10;

struct Step {
  std::vector<float> logits;  // of the token that follows
  double milliseconds = 0;
  uint64_t projections = 0;
};

struct Run {
  std::vector<Step> steps;
  kv_context_info info = {};
};

int32_t best_of(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Appends tokens to the sequence and takes the time.
Step timed_step(kv_context* context, const int32_t* tokens, size_t count, bool forget) {
  auto result = sized<kv_step_result>();
  const uint64_t before = get<kv_context_info>(kv_context_get_info, context).projections;
  const auto start = std::chrono::steady_clock::now();
  if (forget) call(kv_sequence_truncate, context, KV_DEFAULT_SEQUENCE, uint64_t{0});
  call(kv_prefill, context, KV_DEFAULT_SEQUENCE, tokens, count, nullptr, &result);
  const auto time = std::chrono::steady_clock::now() - start;
  const uint64_t after = get<kv_context_info>(kv_context_get_info, context).projections;
  return {{result.rows, result.rows + result.width},
          std::chrono::duration<double, std::milli>(time).count(),
          after - before};
}

// One generation. With the cache a step appends the newest token; without, it starts from nothing.
Run generate(kv_model* model, const char* device, const std::vector<int32_t>& prompt, size_t count, bool use_cache) {
  auto options = sized<kv_context_options>();
  options.device = device;
  options.max_tokens = prompt.size() + count;
  const auto context = make<ContextPtr>(kv_context_create, model, &options);
  std::vector<int32_t> tokens = prompt;
  Run run;
  for (size_t i = 0; i < count; i++) {
    const size_t fresh = use_cache && i > 0 ? 1 : tokens.size();
    run.steps.push_back(timed_step(context.get(), tokens.data() + tokens.size() - fresh, fresh, !use_cache));
    tokens.push_back(best_of(run.steps.back().logits));  // the text's end is no reason to stop here
  }
  run.info = get<kv_context_info>(kv_context_get_info, context.get());
  return run;
}

Run fastest(kv_model* model, const char* device, const std::vector<int32_t>& prompt, size_t count, bool use_cache) {
  Run best = generate(model, device, prompt, count, use_cache);
  for (int r = 1; r < kRuns; r++) {
    const Run next = generate(model, device, prompt, count, use_cache);
    for (size_t i = 0; i < count; i++) {
      best.steps[i].milliseconds = std::min(best.steps[i].milliseconds, next.steps[i].milliseconds);
    }
  }
  return best;
}

// Whether both ways agree, in bits where the device promises that, else in the tokens chosen.
bool same(const Run& cached, const Run& recomputed) {
  const bool bits = cached.info.deterministic != 0;
  for (size_t i = 0; i < cached.steps.size(); i++) {
    const std::vector<float>&a = cached.steps[i].logits, &b = recomputed.steps[i].logits;
    const bool equal = bits ? std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0 : best_of(a) == best_of(b);
    if (!equal) {
      std::fprintf(stderr, "cache_vs_recompute: step %zu differs between the two\n", i);
      return false;
    }
  }
  std::printf("all %zu steps: same tokens%s\n", cached.steps.size(), bits ? ", and the same bits in every logit" : "");
  return true;
}

void print_table(const Run& cached, const Run& recomputed, size_t prompt) {
  std::printf("\n%8s %12s %12s %8s %14s %14s\n%8s %12s %12s %8s %14s %14s\n", "length", "with cache", "without",
              "ratio", "projections", "projections", "", "ms/token", "ms/token", "", "computed", "avoided");
  const size_t count = cached.steps.size();
  const size_t rows = std::min(count, kTableRows);
  for (size_t r = 0; r < rows; r++) {
    const size_t i = rows == 1 ? 0 : r * (count - 1) / (rows - 1);
    const Step &with = cached.steps[i], &without = recomputed.steps[i];
    std::printf("%8zu %12.3f %12.3f %8.1f %14llu %14llu\n", prompt + i, with.milliseconds, without.milliseconds,
                without.milliseconds / with.milliseconds, ull{with.projections},
                ull{without.projections - with.projections});
  }
}

void write_plot(const char* path, const Run& cached, const Run& recomputed, size_t prompt) {
  Plot plot = {"Time per token against length of the text",
               "Without a cache every step computes all keys and values again; with it, one of each per layer.",
               "tokens in the text",
               "milliseconds per token",
               {}};
  Series without = {"without cache", "#d1495b", {}, {}}, with = {"with cache", "#00798c", {}, {}};
  for (size_t i = 1; i < cached.steps.size(); i++) {  // step 0 is the prompt in both
    const auto length = static_cast<double>(prompt + i);
    with.x.push_back(length);
    with.y.push_back(cached.steps[i].milliseconds);
    without.x.push_back(length);
    without.y.push_back(recomputed.steps[i].milliseconds);
  }
  plot.series = {without, with};
  std::ofstream file(path, std::ios::binary);
  file << svg_of(plot);
  file.close();
  if (!file) throw Failure(KV_IO, (std::string("cannot write '") + path + "'").c_str());
  std::printf("plot: %s\n", path);
}

int compare(const char* path, size_t count, const char* plot, const char* device) {
  const auto runtime = make<RuntimePtr>(kv_runtime_create, nullptr);
  const auto model = make<ModelPtr>(kv_model_load_file, runtime.get(), path, nullptr);
  const kv_tokenizer* tokenizer = kv_model_tokenizer(model.get());
  if (tokenizer == nullptr) throw Failure(KV_UNSUPPORTED, "the model's file has no tokenizer");
  const std::vector<int32_t> prompt = tokenize(tokenizer, kPrompt, KV_TOKENIZE_ADD_SPECIAL);

  const Run cached = fastest(model.get(), device, prompt, count, true);
  const Run recomputed = fastest(model.get(), device, prompt, count, false);
  if (!same(cached, recomputed)) return 1;
  print_table(cached, recomputed, prompt.size());
  const ull computed = cached.info.projections, avoided = cached.info.projections_avoided;
  std::printf("\nquery, key and value projections: %llu computed with the cache, %llu without it, %llu avoided\n",
              computed, ull{recomputed.info.projections}, avoided);
  if (recomputed.info.projections != computed + avoided) {
    std::fprintf(stderr, "cache_vs_recompute: computed and avoided do not add up\n");
    return 1;
  }
  write_plot(plot, cached, recomputed, prompt.size());
  return 0;
}

}  // namespace
}  // namespace kvasir::example

int main(int argc, char** argv) {
  size_t count = 200;
  const bool counted = argc < 3 || std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), count).ec == std::errc();
  if (argc < 2 || argc > 5 || !counted || count < 2 || count > 100000) {
    std::fprintf(stderr, "usage: cache_vs_recompute model.gguf [tokens, 2 or more] [plot.svg] [device]\n");
    return 2;
  }
  try {
    return kvasir::example::compare(argv[1], count, argc > 3 ? argv[3] : "cache_vs_recompute.svg",
                                    argc > 4 ? argv[4] : "cpu");
  } catch (const kvasir::cli::Failure& failure) {
    std::fprintf(stderr, "cache_vs_recompute: %s: %s\n", kv_status_name(failure.status), failure.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache_vs_recompute: %s\n", error.what());
  }
  return 1;
}
