// SPDX-License-Identifier: MIT
//
// The prompt of run_model, at once and one token at a time.
#include <vector>

#include "fuzz/host.h"

namespace kvasir::fuzz {
namespace {

constexpr size_t kTokens = 6;

struct Outcome {
  kv_status status = KV_OK;
  std::vector<float> row;
};

// The prompt in steps of `chunk` tokens into a context of its own.
Outcome run(kv_model* model, const kv_model_info& info, size_t chunk) {
  const kv_context_options options = small_options();
  kv_context* made = nullptr;
  Error e;
  Outcome outcome;
  outcome.status = judged(kv_context_create(model, &options, &made, &e), e);
  const ContextPtr context(made);
  if (outcome.status != KV_OK) return outcome;
  std::vector<int32_t> tokens(kTokens);
  for (size_t i = 0; i < kTokens; ++i)
    tokens[i] = info.vocab != 0 ? static_cast<int32_t>(7 * i % info.vocab) : KV_TOKEN_ROW;
  const std::vector<float> rows(info.vocab != 0 ? 0 : kTokens * info.dim, 0.5F);
  kv_step_result result = sized<kv_step_result>();
  for (size_t at = 0; at < kTokens; at += chunk) {
    kv_step_input input = sized<kv_step_input>();
    input.tokens = tokens.data() + at;
    input.rows = rows.empty() ? nullptr : rows.data() + at * info.dim;
    input.count = std::min(chunk, kTokens - at);
    outcome.status = judged(kv_step(context.get(), &input, 1, nullptr, &result, &e), e);
    if (outcome.status != KV_OK) return outcome;
    KV_REQUIRE(result.rows != nullptr && result.length == at + input.count);
  }
  outcome.row.assign(result.rows, result.rows + result.width);
  return outcome;
}

}  // namespace

void run_model(kv_model* model) {
  kv_model_info info = sized<kv_model_info>();
  Error e;
  KV_REQUIRE(kv_model_get_info(model, &info, &e) == KV_OK);
  const Outcome whole = run(model, info, kTokens);
  if (whole.status != KV_OK) return;
  const Outcome single = run(model, info, 1);
  // Logits that are no numbers at an earlier token end the run that looks at them.
  if (single.status == KV_BAD_LOGITS) return;
  KV_REQUIRE(single.status == KV_OK);
  KV_REQUIRE(whole.row.size() == single.row.size());
  KV_REQUIRE(std::memcmp(whole.row.data(), single.row.data(), whole.row.size() * sizeof(float)) == 0);
}

}  // namespace kvasir::fuzz
