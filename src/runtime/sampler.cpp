// SPDX-License-Identifier: MIT
//
// The steps of sampler.h, in that order. A plain greedy choice reads the logits once and copies nothing.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/float_state.h"
#include "runtime/sampler_math.h"

namespace kvasir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status check_knob(const char* name, float value, float lowest, float highest) {
  KV_CHECK(value >= lowest && value <= highest, KV_INVALID_ARGUMENT, "%s is %g, outside %g to %g", name,
           static_cast<double>(value), static_cast<double>(lowest), static_cast<double>(highest));
  return {};
}

bool is_bad(float logit) { return !(logit < kInfinity); }  // NaN or +infinity

Status describe_bad(std::span<const float> logits, uint64_t step, const char* when) {
  const auto first = std::find_if(logits.begin(), logits.end(), is_bad);
  const auto nans = std::count_if(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
  const auto infinities = std::count(logits.begin(), logits.end(), kInfinity);
  return Status::error(
      KV_BAD_LOGITS, "the %zu logits of sampling step %llu%s hold %td NaN and %td +infinity, first at token %td",
      logits.size(), static_cast<unsigned long long>(step), when, nans, infinities, first - logits.begin());
}

size_t count_bad(std::span<const float> logits) {
  size_t bad = 0;
  for (const float logit : logits) bad += is_bad(logit) ? 1 : 0;
  return bad;
}

// Index of the largest, the first of equals.
size_t arg_max(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

float saturate(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace

Status Sampler::create(SamplerOptions options, std::unique_ptr<Sampler>* out) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  KV_RETURN_IF_ERROR(check_knob("temperature", options.temperature, 0.0f, kLargest));
  KV_RETURN_IF_ERROR(check_knob("top_p", options.top_p, 0.0f, 1.0f));
  KV_RETURN_IF_ERROR(check_knob("min_p", options.min_p, 0.0f, 1.0f));
  KV_RETURN_IF_ERROR(
      check_knob("repetition_penalty", options.repetition_penalty, std::numeric_limits<float>::min(), kLargest));
  KV_RETURN_IF_ERROR(check_knob("frequency_penalty", options.frequency_penalty, 0.0f, kLargest));
  KV_RETURN_IF_ERROR(check_knob("presence_penalty", options.presence_penalty, 0.0f, kLargest));
  for (const auto& [token, added] : options.bias) {
    KV_CHECK(token >= 0, KV_INVALID_ARGUMENT, "bias names token %d", token);
    KV_CHECK(!is_bad(added), KV_INVALID_ARGUMENT, "the bias of token %d is %g", token, static_cast<double>(added));
  }
  out->reset(new Sampler(std::move(options)));
  return {};
}

bool Sampler::more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

bool Sampler::penalizes() const {
  return !counts_.empty() && (options_.repetition_penalty != 1.0f || options_.frequency_penalty != 0.0f ||
                              options_.presence_penalty != 0.0f);
}

// Every token is changed on its own, so the order of the map does not matter.
void Sampler::apply_penalties() {
  for (const auto& [token, count] : counts_) {
    // A count of 0 is what an accept() leaves that ran out of memory.
    if (count == 0 || static_cast<size_t>(token) >= work_.size()) continue;
    float& logit = work_[static_cast<size_t>(token)];
    if (logit == -kInfinity) continue;
    const double repetition = options_.repetition_penalty;
    const double repeated = logit > 0.0f ? logit / repetition : logit * repetition;
    logit = saturate(repeated - (double{options_.frequency_penalty} * count + options_.presence_penalty));
  }
}

Status Sampler::check_adjusted() const {
  if (count_bad(work_) > 0) return describe_bad(work_, step_, ", after the hook,");
  KV_CHECK(work_[arg_max(work_)] > -kInfinity, KV_BAD_LOGITS,
           "every one of the %zu tokens is excluded by bias or hook at sampling step %llu", work_.size(),
           static_cast<unsigned long long>(step_));
  return {};
}

Status Sampler::adjust(std::span<const float> logits, std::span<const float>* adjusted) {
  *adjusted = logits;
  if (options_.bias.empty() && !options_.hook && !penalizes()) return {};
  work_.assign(logits.begin(), logits.end());
  for (const auto& [token, added] : options_.bias) {
    KV_CHECK(static_cast<size_t>(token) < work_.size(), KV_INVALID_ARGUMENT,
             "bias names token %d, but there are %zu logits", token, work_.size());
    float& logit = work_[static_cast<size_t>(token)];
    logit = added == -kInfinity || logit == -kInfinity ? -kInfinity : saturate(double{logit} + added);
  }
  if (penalizes()) apply_penalties();
  if (options_.hook) {
    const HostFloatState floats;
    options_.hook(work_);
  }
  *adjusted = work_;
  return check_adjusted();
}

// Leaves the k most likely, in ascending order of ids.
void Sampler::keep_top_k() {
  if (options_.top_k == 0 || options_.top_k >= candidates_.size()) return;
  const auto end = candidates_.begin() + options_.top_k;
  std::partial_sort(candidates_.begin(), end, candidates_.end(), more_likely);
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
}

void Sampler::weigh(float highest) {
  for (Candidate& candidate : candidates_) {
    candidate.weight = portable_exp((double{candidate.logit} - highest) / options_.temperature);
  }
}

// Leaves the nucleus, in ascending order of ids. A heap yields the most likely ones without sorting the rest.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0f) return;
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const auto less_likely = [](const Candidate& a, const Candidate& b) { return more_likely(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  auto heap_end = candidates_.end();
  double sum = 0.0;
  do {
    std::pop_heap(candidates_.begin(), heap_end, less_likely);
    sum += (--heap_end)->weight;
  } while (sum < options_.top_p * total && heap_end != candidates_.begin());
  candidates_.erase(candidates_.begin(), heap_end);
  std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
}

int32_t Sampler::draw(std::span<const float> logits, float highest) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) candidates_.push_back({static_cast<int32_t>(i), logits[i], 0.0});
  }
  keep_top_k();
  weigh(highest);
  keep_top_p();
  // The most likely candidate has weight exactly 1.
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight == 0.0 || c.weight < options_.min_p; });
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double target = random_uniform(seed_, draws_) * total;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (sum > target) return candidate.token;
  }
  return candidates_.back().token;  // only by rounding of `target`
}

void Sampler::fill_logprobs(std::span<const float> logits, float highest, uint32_t top, SampleResult* result) {
  double sum = 0.0;
  for (const float logit : logits) sum += portable_exp(double{logit} - highest);
  const double log_sum = portable_log(sum);
  const auto logprob = [&](float logit) { return static_cast<float>(double{logit} - highest - log_sum); };
  result->logprob = logprob(logits[static_cast<size_t>(result->token)]);
  if (top == 0) return;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) candidates_.push_back({static_cast<int32_t>(i), logits[i], 0.0});
  }
  const size_t count = std::min<size_t>(top, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count), candidates_.end(),
                    more_likely);
  for (size_t i = 0; i < count; ++i) result->top_n.emplace_back(candidates_[i].token, logprob(candidates_[i].logit));
}

Status Sampler::sample(std::span<const float> logits, SampleResult* result, uint32_t top) {
  KV_CHECK(!logits.empty(), KV_INVALID_ARGUMENT, "there are no logits to sample from");
  KV_CHECK(logits.size() <= static_cast<size_t>(std::numeric_limits<int32_t>::max()), KV_INVALID_ARGUMENT,
           "%zu logits are more than token ids can number", logits.size());
  if (count_bad(logits) > 0) return describe_bad(logits, step_, "");
  KV_CHECK(logits[arg_max(logits)] > -kInfinity, KV_BAD_LOGITS, "all %zu logits of sampling step %llu are -infinity",
           logits.size(), static_cast<unsigned long long>(step_));
  std::span<const float> adjusted;
  KV_RETURN_IF_ERROR(adjust(logits, &adjusted));
  const size_t best = arg_max(adjusted);
  SampleResult chosen;
  const bool greedy = options_.temperature == 0.0f;
  chosen.token = greedy ? static_cast<int32_t>(best) : draw(adjusted, adjusted[best]);
  if (options_.logprobs) fill_logprobs(adjusted, adjusted[best], top, &chosen);
  *result = std::move(chosen);
  if (!greedy) ++draws_;
  ++step_;
  return {};
}

Status Sampler::accept(int32_t token) {
  KV_CHECK(token >= 0, KV_INVALID_ARGUMENT, "token %d cannot be accepted", token);
  if (options_.penalty_last == 0) return {};
  const auto count = counts_.try_emplace(token, 0).first;
  history_.push_back(token);
  ++count->second;
  if (history_.size() <= options_.penalty_last) return {};
  const auto oldest = counts_.find(history_.front());
  if (--oldest->second == 0) counts_.erase(oldest);
  history_.pop_front();
  return {};
}

void Sampler::reset(uint64_t seed, uint64_t draws) {
  seed_ = seed;
  draws_ = draws;
  step_ = 0;
  history_.clear();
  counts_.clear();
}

}  // namespace kvasir
