// SPDX-License-Identifier: MIT
//
// Sampler: a token out of logits. One thread at a time; knows nothing of models, contexts or text.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"

namespace kvasir {

using LogitsHook = std::function<void(std::span<float> logits)>;

struct SamplerOptions {
  float temperature = 0.0f;
  uint32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  uint32_t penalty_last = 64;
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> bias;  // (token, added); entries of one token add up
  LogitsHook hook;
  bool logprobs = false;  // fill SampleResult::logprob and top_n; costs a pass over the vocabulary
};

struct SampleResult {
  int32_t token = -1;
  float logprob = std::numeric_limits<float>::quiet_NaN();  // NaN unless options.logprobs
  std::vector<std::pair<int32_t, float>> top_n;             // (token, logprob), most probable first
};

// Order of operations, each on the result of the one before:
//   1 bias           logit += bias; -infinity excludes the token. Sums stop at the largest finite float.
//   2 penalties      for each token among the last `penalty_last` accepted ones, seen `count` times there:
//                    logit > 0 ? logit / repetition : logit * repetition; then logit -= frequency * count + presence
//   3 hook           may change any logit, -infinity excludes
//   4 temperature    0: the arg-max, ties to the lowest id, and nothing below applies; else logit / temperature
//   5 top-k          the k largest, ties to the lower id; 0 = off
//   6 softmax
//   7 top-p          the fewest of the most probable whose sum reaches top_p, at least one; 1 = off, 0 = one token
//   8 min-p          drops what is less probable than min_p times the most probable; 0 = off
//   9 draw           inverse distribution function over what is left, in ascending order of ids
// Log-probabilities are of the distribution after step 3: what the model, as adjusted, believes, before temperature and
// truncation. Arithmetic is double, in a fixed order, with own functions (sampler_math.h): the same logits, options and
// seed give the same tokens on every platform. Each successful draw uses one number of the stream, greedy choices none.
class Sampler {
 public:
  // A knob that is negative, not a number or out of its range is an error that names it.
  static Status create(SamplerOptions options, std::unique_ptr<Sampler>* out);

  // Chooses among logits.size() tokens. NaN, +infinity, or nothing to choose from: KV_BAD_LOGITS, with the number of
  // the step (successful choices since the start or reset). On failure nothing changes. Does not accept the token.
  // `top`: entries of result->top_n, when options.logprobs.
  Status sample(std::span<const float> logits, SampleResult* result, uint32_t top = 0);

  // Adds a token to the history that penalties look at: the chosen one, also the prompt's if they shall count.
  Status accept(int32_t token);

  // Starts the stream of `seed` at number `draws` and forgets the history. With draws() and the tokens accepted so far,
  // a caller can continue a stream elsewhere.
  void reset(uint64_t seed, uint64_t draws = 0);

  uint64_t draws() const { return draws_; }
  const SamplerOptions& options() const { return options_; }

 private:
  struct Candidate {
    int32_t token;
    float logit;
    double weight;  // probability, up to a common factor
  };

  explicit Sampler(SamplerOptions&& options) : options_(std::move(options)), seed_(options_.seed) {}

  bool penalizes() const;
  Status adjust(std::span<const float> logits, std::span<const float>* adjusted);
  void apply_penalties();
  Status check_adjusted() const;
  int32_t draw(std::span<const float> logits, float highest);
  void keep_top_k();
  void weigh(float highest);
  void keep_top_p();
  void fill_logprobs(std::span<const float> logits, float highest, uint32_t top, SampleResult* result);

  static bool more_likely(const Candidate& a, const Candidate& b);

  SamplerOptions options_;
  uint64_t seed_;
  uint64_t draws_ = 0;
  uint64_t step_ = 0;
  std::deque<int32_t> history_;                   // at most penalty_last
  std::unordered_map<int32_t, uint32_t> counts_;  // of the tokens in history_
  std::vector<float> work_;                       // [vocab], adjusted logits
  std::vector<Candidate> candidates_;
};

}  // namespace kvasir
