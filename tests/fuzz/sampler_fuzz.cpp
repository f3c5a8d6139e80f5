// SPDX-License-Identifier: MIT
//
// A sampler of any options over any logits: a token that exists and is not excluded, or a sentence; the logits are left
// as they are, the likeliest tokens come in order, and the same seed draws the same tokens.
#include <cmath>
#include <vector>

#include "fuzz/host.h"

namespace {

using namespace kvasir::fuzz;

struct Run {
  kv_sampler_options options = sized<kv_sampler_options>();
  std::vector<kv_logit_bias> bias;
  std::vector<float> logits;
  std::vector<int32_t> accepted;
};

Run read(Bytes* bytes) {
  Run run;
  kv_sampler_options& o = run.options;
  o.temperature = bytes->real();
  o.top_k = bytes->u32();
  o.use_top_p = bytes->below(3);
  o.top_p = bytes->real();
  o.min_p = bytes->real();
  o.repetition_penalty = bytes->real();
  o.frequency_penalty = bytes->real();
  o.presence_penalty = bytes->real();
  o.penalty_last = bytes->u32();
  o.seed = bytes->number();
  o.log_probabilities = bytes->below(3);
  o.reserved = bytes->below(32) == 0 ? 1 : 0;
  for (uint32_t i = bytes->below(6); i > 0; --i) run.bias.push_back({bytes->i32(), bytes->real()});
  for (uint32_t i = bytes->below(8); i > 0; --i) run.accepted.push_back(bytes->i32());
  for (uint32_t i = bytes->below(40); i > 0; --i) run.logits.push_back(bytes->real());
  o.bias = run.bias.data();
  o.bias_count = run.bias.size();
  return run;
}

bool excluded(const Run& run, int32_t token) {
  if (run.logits[static_cast<size_t>(token)] == -INFINITY) return true;
  for (const kv_logit_bias& bias : run.bias) {
    if (bias.token == token && bias.bias == -INFINITY) return true;
  }
  return false;
}

void check_sample(const Run& run, const kv_sample& sample, const std::vector<float>& before) {
  const size_t count = run.logits.size();
  KV_REQUIRE(sample.token >= 0 && static_cast<size_t>(sample.token) < count);
  KV_REQUIRE(!excluded(run, sample.token));
  KV_REQUIRE(std::memcmp(before.data(), run.logits.data(), count * sizeof(float)) == 0);
  KV_REQUIRE(sample.top_count <= sample.top_capacity);
  for (uint32_t i = 0; i < sample.top_count; ++i) {
    KV_REQUIRE(sample.top[i].token >= 0 && static_cast<size_t>(sample.top[i].token) < count);
    KV_REQUIRE(sample.top[i].log_probability <= 1e-5F);
    KV_REQUIRE(i == 0 || sample.top[i].log_probability <= sample.top[i - 1].log_probability);
  }
}

// The tokens of a few draws; empty from the first refusal on.
std::vector<int32_t> draw(const Run& run) {
  std::vector<int32_t> tokens;
  kv_sampler* sampler = nullptr;
  Error e;
  if (judged(kv_sampler_create(&run.options, &sampler, &e), e) != KV_OK) return tokens;
  const std::vector<float> before = run.logits;
  for (const int32_t token : run.accepted) (void)judged(kv_sampler_accept(sampler, token, &e), e);
  for (uint32_t i = 0; i < 4; ++i) {
    kv_candidate top[5];
    kv_sample sample = sized<kv_sample>();
    sample.top_capacity = run.options.log_probabilities != 0 ? 5 : 0;
    sample.top = top;
    const auto count = static_cast<uint32_t>(run.logits.size());
    const float nothing = 0.0F;
    const float* logits = run.logits.empty() ? &nothing : run.logits.data();
    if (judged(kv_sampler_sample(sampler, logits, count, &sample, &e), e) != KV_OK) break;
    check_sample(run, sample, before);
    tokens.push_back(sample.token);
    KV_REQUIRE(kv_sampler_accept(sampler, sample.token, &e) == KV_OK);
  }
  kv_sampler_release(sampler);
  return tokens;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Run run = read(&bytes);
  const std::vector<int32_t> first = draw(run);
  KV_REQUIRE(draw(run) == first);
  return 0;
}
