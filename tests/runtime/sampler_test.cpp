// SPDX-License-Identifier: MIT
//
// The sampler against tables worked out by hand: broken logits (case P30), what zero means and what a seed promises
// (case P31).
#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <thread>

#include "runtime/sampler_math.h"

namespace kvasir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Probabilities 0.1, 0.4, 0.05, 0.4, 0.05 at temperature 1: two ties.
const std::vector<float> kFive = {std::log(0.1f), std::log(0.4f), std::log(0.05f), std::log(0.4f), std::log(0.05f)};

std::unique_ptr<Sampler> make(const std::function<void(SamplerOptions*)>& change = [](SamplerOptions*) {}) {
  SamplerOptions options;
  change(&options);
  std::unique_ptr<Sampler> sampler;
  const Status status = Sampler::create(std::move(options), &sampler);
  EXPECT_TRUE(status.ok()) << status.message();
  return sampler;
}

int32_t sample(Sampler* sampler, const std::vector<float>& logits) {
  SampleResult result;
  const Status status = sampler->sample(logits, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result.token;
}

std::vector<int32_t> stream(Sampler* sampler, const std::vector<float>& logits, int count) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(sample(sampler, logits));
  return tokens;
}

// The tokens that ever come out.
std::set<int32_t> support(const std::vector<float>& logits, const std::function<void(SamplerOptions*)>& change) {
  const auto sampler = make([&](SamplerOptions* o) {
    o->temperature = 1.0f;
    change(o);
  });
  const auto tokens = stream(sampler.get(), logits, 400);
  return {tokens.begin(), tokens.end()};
}

void expect_bad(Sampler* sampler, const std::vector<float>& logits, kv_status code, const std::string& sentence) {
  SampleResult result;
  result.token = 77;
  const Status status = sampler->sample(logits, &result);
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(result.token, 77);
}

TEST(SamplerMath, MatchesTheLibraryClosely) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-800.0), 0.0);
  EXPECT_EQ(portable_exp(-static_cast<double>(kInf)), 0.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
  for (int i = 0; i < 20000; ++i) {
    const double x = -700.0 * random_uniform(1, static_cast<uint64_t>(i));
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-15) << x;
    EXPECT_NEAR(portable_log(1.0 - x), std::log(1.0 - x), 4e-15) << x;
  }
}

// Pins the generator: SplitMix64 over the mixed seed, top 53 bits.
TEST(SamplerMath, TheStreamIsFixed) {
  EXPECT_EQ(random_uniform(0, 0), 0.88331080821364261);
  EXPECT_EQ(random_uniform(0, 1), 0.43152799704850997);
  EXPECT_EQ(random_uniform(42, 0), 0.59611887183020762);
  EXPECT_EQ(random_uniform(42, 3), 0.048025795475956312);
}

TEST(Sampler, DefaultIsGreedyWithTiesToTheLowestId) {
  const auto sampler = make();
  EXPECT_EQ(sample(sampler.get(), kFive), 1);
  EXPECT_EQ(sample(sampler.get(), {0, 0, 0}), 0);
  EXPECT_EQ(sample(sampler.get(), {-kInf, -5, -kInf}), 1);
  EXPECT_EQ(sample(sampler.get(), {-3}), 0);
  EXPECT_EQ(sampler->draws(), 0u);
}

TEST(Sampler, TemperatureZeroIsArgMaxWhateverElseIsSet) {
  const auto sampler = make([](SamplerOptions* o) {
    o->top_k = 3;
    o->top_p = 0.5f;
    o->min_p = 0.9f;
    o->seed = 9;
  });
  EXPECT_EQ(stream(sampler.get(), kFive, 50), std::vector<int32_t>(50, 1));
}

TEST(Sampler, KnobsKeepTheRightTokens) {
  using Set = std::set<int32_t>;
  EXPECT_EQ(support(kFive, [](SamplerOptions*) {}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = 0, o->top_p = 1, o->min_p = 0; }), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = 1; }), (Set{1}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = 2; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = 4; }), (Set{0, 1, 2, 3}));  // tie of 2 and 4
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = UINT32_MAX; }), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_p = 0; }), (Set{1}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_p = 0.39f; }), (Set{1}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_p = 0.41f; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_p = 0.85f; }), (Set{0, 1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_p = 0.94f; }), (Set{0, 1, 2, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->min_p = 0.2f; }), (Set{0, 1, 3}));  // 0.08 of probability
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->min_p = 0.3f; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->min_p = 1; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->top_k = 3, o->top_p = 0.8f; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->temperature = 1e-6f; }), (Set{1, 3}));
  EXPECT_EQ(support(kFive, [](SamplerOptions* o) { o->temperature = 1e30f; }), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support({-kInf, 0, -kInf, 0}, [](SamplerOptions* o) { o->temperature = 1e30f; }), (Set{1, 3}));
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  const auto sampler = make([](SamplerOptions* o) { o->temperature = 1.0f; });
  constexpr int kDraws = 20000;
  std::vector<int> counts(5);
  for (const int32_t token : stream(sampler.get(), kFive, kDraws)) ++counts[static_cast<size_t>(token)];
  const double expected[] = {0.1, 0.4, 0.05, 0.4, 0.05};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(counts[i] / double{kDraws}, expected[i], 0.012) << i;
}

// The draw is the inverse distribution function in ascending ids: u in [0,.1) [.1,.5) [.5,.55) [.55,.95) [.95,1).
TEST(Sampler, DrawsByTheDocumentedStream) {
  const auto sampler = make([](SamplerOptions* o) { o->temperature = 1.0f, o->seed = 42; });
  // .596 .160 .166 .048
  EXPECT_EQ(stream(sampler.get(), kFive, 4), (std::vector<int32_t>{3, 1, 1, 0}));
  sampler->reset(0);
  // .883 .432 .026 .971
  EXPECT_EQ(stream(sampler.get(), kFive, 4), (std::vector<int32_t>{3, 1, 0, 4}));
  EXPECT_EQ(sampler->draws(), 4u);
}

TEST(Sampler, OneSeedOneStream) {
  const auto with_seed = [](uint64_t seed) {
    return make([&](SamplerOptions* o) { o->temperature = 1.0f, o->seed = seed; });
  };
  const auto first = with_seed(7);
  const std::vector<int32_t> expected = stream(first.get(), kFive, 64);
  const auto other = with_seed(8);
  EXPECT_NE(stream(other.get(), kFive, 64), expected);

  std::vector<int32_t> elsewhere;
  std::thread([&] { elsewhere = stream(with_seed(7).get(), kFive, 64); }).join();
  EXPECT_EQ(elsewhere, expected);

  // Continued by another sampler from draws().
  const auto begun = with_seed(7);
  std::vector<int32_t> joined = stream(begun.get(), kFive, 20);
  other->reset(7, begun->draws());
  for (const int32_t token : stream(other.get(), kFive, 44)) joined.push_back(token);
  EXPECT_EQ(joined, expected);

  // Greedy choices and failures use no number of the stream.
  first->reset(7);
  SampleResult result;
  const std::vector<float> broken{kNan, 0};
  EXPECT_EQ(first->sample(broken, &result).code(), KV_BAD_LOGITS);
  EXPECT_EQ(stream(first.get(), kFive, 64), expected);
}

TEST(Sampler, PenaltiesByHand) {
  const std::vector<float> logits{2, 1.5, -1, -1.2f};
  const auto repetition = make([](SamplerOptions* o) { o->repetition_penalty = 2; });
  EXPECT_EQ(sample(repetition.get(), logits), 0);
  ASSERT_TRUE(repetition->accept(0).ok());
  EXPECT_EQ(sample(repetition.get(), logits), 1);  // 2 / 2 < 1.5
  const std::vector<float> negative{-1, -1.5, -kInf};
  EXPECT_EQ(sample(repetition.get(), negative), 1);  // -1 * 2 < -1.5

  const auto presence = make([](SamplerOptions* o) { o->presence_penalty = 0.4f; });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(presence->accept(0).ok());
  EXPECT_EQ(sample(presence.get(), logits), 0);  // 2 - 0.4, however often

  const auto frequency = make([](SamplerOptions* o) { o->frequency_penalty = 0.4f; });
  ASSERT_TRUE(frequency->accept(0).ok());
  EXPECT_EQ(sample(frequency.get(), logits), 0);  // 2 - 0.4
  ASSERT_TRUE(frequency->accept(0).ok());
  EXPECT_EQ(sample(frequency.get(), logits), 1);  // 2 - 0.8
  frequency->reset(0);
  EXPECT_EQ(sample(frequency.get(), logits), 0);
  ASSERT_TRUE(frequency->accept(4711).ok());  // outside these logits: no effect
  EXPECT_EQ(sample(frequency.get(), logits), 0);
  EXPECT_EQ(frequency->accept(-1).code(), KV_INVALID_ARGUMENT);
}

TEST(Sampler, PenaltiesForgetAfterTheWindow) {
  const std::vector<float> logits{2, 1.5, 0, 0};
  const auto sampler = make([](SamplerOptions* o) { o->repetition_penalty = 2, o->penalty_last = 2; });
  ASSERT_TRUE(sampler->accept(0).ok());
  ASSERT_TRUE(sampler->accept(2).ok());
  EXPECT_EQ(sample(sampler.get(), logits), 1);
  ASSERT_TRUE(sampler->accept(3).ok());
  EXPECT_EQ(sample(sampler.get(), logits), 0);
  const auto none = make([](SamplerOptions* o) { o->repetition_penalty = 2, o->penalty_last = 0; });
  ASSERT_TRUE(none->accept(0).ok());
  EXPECT_EQ(sample(none.get(), logits), 0);
}

TEST(Sampler, BiasAndHookInOrder) {
  const auto biased = make([](SamplerOptions* o) { o->bias = {{2, 3.0f}, {1, -kInf}, {2, 1.0f}}; });
  EXPECT_EQ(sample(biased.get(), {3, 9, 0}), 2);
  EXPECT_EQ(sample(biased.get(), {5, 9, 0}), 0);
  EXPECT_EQ(sample(biased.get(), {5, 9, -kInf}), 0);  // what the model excludes stays so
  expect_bad(biased.get(), {1, 2}, KV_INVALID_ARGUMENT, "bias names token 2, but there are 2 logits");

  // The hook sees biased and penalised logits and has the last word.
  std::vector<float> seen;
  const auto hooked = make([&](SamplerOptions* o) {
    o->bias = {{0, 1.0f}};
    o->presence_penalty = 0.5f;
    o->hook = [&](std::span<float> logits) {
      seen.assign(logits.begin(), logits.end());
      logits[0] = -kInf;
    };
  });
  ASSERT_TRUE(hooked->accept(1).ok());
  EXPECT_EQ(sample(hooked.get(), {1, 1, 1}), 2);
  EXPECT_EQ(seen, (std::vector<float>{2, 0.5f, 1}));
}

TEST(Sampler, HugeBiasSaturates) {
  const auto sampler = make([](SamplerOptions* o) { o->bias = {{1, 3e38f}, {1, 3e38f}, {1, 3e38f}}; });
  EXPECT_EQ(sample(sampler.get(), {3e38f, 0}), 1);
}

TEST(Sampler, LogProbabilitiesAreOfTheAdjustedDistribution) {
  const auto sampler = make([](SamplerOptions* o) {
    o->temperature = 0.1f;
    o->top_k = 1;
    o->logprobs = true;
    o->bias = {{3, -kInf}};
  });
  SampleResult result;
  ASSERT_TRUE(sampler->sample(kFive, &result, 3).ok());
  EXPECT_EQ(result.token, 1);
  EXPECT_NEAR(result.logprob, std::log(0.4 / 0.6), 1e-6);
  ASSERT_EQ(result.top_n.size(), 3u);
  EXPECT_EQ(result.top_n[0].first, 1);
  EXPECT_EQ(result.top_n[1].first, 0);
  EXPECT_EQ(result.top_n[2].first, 2);  // tie with 4: the lower id
  EXPECT_NEAR(result.top_n[1].second, std::log(0.1 / 0.6), 1e-6);
  EXPECT_NEAR(result.top_n[2].second, std::log(0.05 / 0.6), 1e-6);

  const auto more_than_there_is = make([](SamplerOptions* o) { o->logprobs = true; });
  ASSERT_TRUE(more_than_there_is->sample(std::vector<float>{0, -kInf}, &result, 9).ok());
  EXPECT_EQ(result.top_n.size(), 1u);
  EXPECT_EQ(result.logprob, 0.0f);
  const auto off = make();
  ASSERT_TRUE(off->sample(kFive, &result).ok());
  EXPECT_TRUE(std::isnan(result.logprob));
  EXPECT_TRUE(result.top_n.empty());
}

// Case P30.
TEST(Sampler, BrokenLogitsAreAnErrorNotAToken) {
  for (const float temperature : {0.0f, 1.0f}) {
    const auto sampler = make([&](SamplerOptions* o) { o->temperature = temperature; });
    sample(sampler.get(), kFive);
    const std::string step = "logits of sampling step 1";
    expect_bad(sampler.get(), {-kInf, -kInf, -kInf}, KV_BAD_LOGITS, "all 3 " + step + " are -infinity");
    expect_bad(sampler.get(), {0, kNan, 5}, KV_BAD_LOGITS,
               "the 3 " + step + " hold 1 NaN and 0 +infinity, first at token 1");
    expect_bad(sampler.get(), {kNan, kNan}, KV_BAD_LOGITS,
               "the 2 " + step + " hold 2 NaN and 0 +infinity, first at token 0");
    expect_bad(sampler.get(), {0, 0, kInf}, KV_BAD_LOGITS,
               "the 3 " + step + " hold 0 NaN and 1 +infinity, first at token 2");
    expect_bad(sampler.get(), {0, kInf, -kInf, kInf}, KV_BAD_LOGITS,
               "the 4 " + step + " hold 0 NaN and 2 +infinity, first at token 1");
    expect_bad(sampler.get(), {}, KV_INVALID_ARGUMENT, "there are no logits to sample from");
    EXPECT_EQ(sampler->draws(), temperature > 0.0f ? 1u : 0u);
    EXPECT_EQ(sample(sampler.get(), {0, 9, -kInf}), 1);
  }
}

TEST(Sampler, EverythingBannedIsItsOwnError) {
  const auto banned = make([](SamplerOptions* o) { o->bias = {{0, -kInf}, {1, -kInf}}; });
  expect_bad(banned.get(), {1, 2}, KV_BAD_LOGITS,
             "every one of the 2 tokens is excluded by bias or hook at sampling step 0");
  EXPECT_EQ(sample(banned.get(), {1, 2, 0}), 2);
  const auto broken_hook = make([](SamplerOptions* o) { o->hook = [](std::span<float> logits) { logits[1] = kNan; }; });
  expect_bad(broken_hook.get(), {1, 2}, KV_BAD_LOGITS,
             "the 2 logits of sampling step 0, after the hook, hold 1 NaN and 0 +infinity, first at token 1");
}

// Fixture F8 with extreme temperatures.
TEST(Sampler, LargeLogitsAndExtremeTemperatures) {
  const std::vector<float> logits{-1e5f, 3e5f, 2.9e5f, 0, 3.4e38f, -3.4e38f};
  for (const float temperature : {1e-45f, 1e-6f, 1.0f, 1e6f, 3.4e38f}) {
    const auto sampler = make([&](SamplerOptions* o) { o->temperature = temperature, o->logprobs = true; });
    SampleResult result;
    ASSERT_TRUE(sampler->sample(logits, &result).ok());
    EXPECT_TRUE(temperature > 1e6f || result.token == 4) << temperature;
    EXPECT_FALSE(std::isnan(result.logprob)) << temperature;
  }
  EXPECT_EQ(support({1e5f, 1e5f, -1e5f}, [](SamplerOptions* o) { o->temperature = 1e6f; }),
            (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, BadKnobsAreNamed) {
  struct Case {
    const char* knob;
    float SamplerOptions::*member;
    std::vector<float> bad;
  };
  const Case cases[] = {{"temperature", &SamplerOptions::temperature, {-0.1f, kNan, kInf}},
                        {"top_p", &SamplerOptions::top_p, {-0.1f, 1.1f, kNan}},
                        {"min_p", &SamplerOptions::min_p, {-0.1f, 1.1f, kNan}},
                        {"repetition_penalty", &SamplerOptions::repetition_penalty, {0.0f, -1.0f, kNan, kInf}},
                        {"frequency_penalty", &SamplerOptions::frequency_penalty, {-1.0f, kNan, kInf}},
                        {"presence_penalty", &SamplerOptions::presence_penalty, {-1.0f, kNan, kInf}}};
  for (const Case& c : cases) {
    for (const float value : c.bad) {
      SamplerOptions options;
      options.*c.member = value;
      std::unique_ptr<Sampler> sampler;
      const Status status = Sampler::create(std::move(options), &sampler);
      EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT) << c.knob << value;
      EXPECT_EQ(std::string(status.message()).rfind(std::string(c.knob) + " is ", 0), 0u) << status.message();
      EXPECT_EQ(sampler, nullptr);
    }
  }
  for (const auto& bias : {std::pair{-1, 0.0f}, {0, kNan}, {0, kInf}}) {
    SamplerOptions options;
    options.bias.emplace_back(bias);
    std::unique_ptr<Sampler> sampler;
    EXPECT_EQ(Sampler::create(std::move(options), &sampler).code(), KV_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace kvasir
