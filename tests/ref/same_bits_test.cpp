// SPDX-License-Identifier: MIT
//
// Promise 3 on a small random model: a token's logits have the same bits whatever chunks its sequence came in, alone or
// beside others, on pages of any size and order, after rows were copied, with everything unowned full of NaN.
#include <algorithm>
#include <cmath>
#include <random>

#include "ref_fixture.h"
#include "small_model.h"

namespace kvasir::testing {
namespace {

constexpr uint32_t kLength = 21;

struct Setting {
  uint32_t cache_type;
  uint32_t page_tokens;
};

class SameBits : public RefTest, public ::testing::WithParamInterface<Setting> {
 protected:
  static constexpr uint32_t kVocab = SmallModel::kVocab;

  // Everything needed to run the model on a poisoned cache whose pages are dealt out in random order.
  struct Session {
    Session(const TestDevice& owner, kvb_queue* owner_queue, const Setting& setting, uint32_t seed)
        : device(owner),
          queue(owner_queue),
          spec(SmallModel::cache(setting.cache_type, setting.page_tokens)),
          program(owner, SmallModel::program({kLength * 3, kLength * 3, 4, 64}), spec) {
      const uint32_t pages = 4 * (kLength / setting.page_tokens + 2);
      cache = make_cache(device, queue, spec, {pages, pages});
      std::mt19937 random(seed);
      for (uint32_t group = 0; group < 2; ++group) {
        for (uint32_t page = 0; page < pages; ++page) {
          free[group].push_back(page);
          expect_ok(device.api->cache_poison_page(queue, cache.get(), group, page, nullptr), {}, "poison");
        }
        std::shuffle(free[group].begin(), free[group].end(), random);
      }
    }

    TestSequence sequence() {
      TestSequence result{0, {{}, {}}};
      for (uint32_t group = 0; group < 2; ++group) {
        for (uint32_t i = 0; i <= kLength / spec.groups[group].page_tokens; ++i) {
          result.pages[group].push_back(free[group].back());
          free[group].pop_back();
        }
      }
      return result;
    }

    std::vector<float> run(StepData& step) { return run_step(device, queue, program, cache.get(), step); }

    const TestDevice& device;
    kvb_queue* queue;
    CacheSpec spec;
    TestProgram program;
    Owned<kvb_cache> cache;
    std::vector<uint32_t> free[2];
  };

  static std::vector<int32_t> tokens(uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> result(kLength);
    for (int32_t& token : result) token = static_cast<int32_t>(random() % kVocab);
    return result;
  }

  static std::vector<int32_t> slice(const std::vector<int32_t>& all, uint32_t first, uint32_t count) {
    const auto begin = all.begin() + first;
    return {begin, begin + count};
  }

  // Logits of every token, the sequence given in chunks.
  static std::vector<float> in_chunks(Session& session, const std::vector<int32_t>& all,
                                      const std::vector<uint32_t>& chunks) {
    TestSequence sequence = session.sequence();
    std::vector<float> result;
    for (const uint32_t chunk : chunks) {
      StepData step;
      step.append(sequence, slice(all, sequence.length, chunk), true);
      const std::vector<float> logits = session.run(step);
      result.insert(result.end(), logits.begin(), logits.end());
    }
    return result;
  }

  // What everything is compared with: one prefill on pages of 16.
  std::vector<float> expected(const std::vector<int32_t>& all) {
    Session session(device, queue.get(), {GetParam().cache_type, 16}, 99);
    std::vector<float> logits = in_chunks(session, all, {kLength});
    for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit));
    EXPECT_NE(std::vector<float>(logits.begin(), logits.begin() + kVocab),
              std::vector<float>(logits.end() - kVocab, logits.end()));
    return logits;
  }

  Session session(uint32_t seed) { return {device, queue.get(), GetParam(), seed}; }
};

// KVB-16, KVB-18, for this and the tests below.
TEST_P(SameBits, AnyChunks) {
  const std::vector<int32_t> all = tokens(1);
  const std::vector<float> wanted = expected(all);
  const std::vector<std::vector<uint32_t>> chunkings = {
      {21}, std::vector<uint32_t>(21, 1), {7, 7, 7}, {1, 20}, {20, 1}, {3, 1, 1, 9, 2, 5}};
  for (size_t i = 0; i < chunkings.size(); ++i) {
    Session s = session(static_cast<uint32_t>(i));
    EXPECT_EQ(in_chunks(s, all, chunkings[i]), wanted) << "chunking " << i;
  }
}

TEST_P(SameBits, BesideOthers) {
  const std::vector<int32_t> all[3] = {tokens(1), tokens(2), tokens(3)};
  Session s = session(7);
  TestSequence sequences[3] = {s.sequence(), s.sequence(), s.sequence()};
  std::vector<float> logits[3];
  std::mt19937 random(11);
  while (true) {
    StepData step;
    std::vector<std::pair<uint32_t, uint32_t>> order;  // sequence, rows
    for (uint32_t i = 0; i < 3; ++i) {
      const uint32_t which = (i + static_cast<uint32_t>(random() % 2)) % 3;
      const bool twice = std::any_of(order.begin(), order.end(), [&](const auto& part) { return part.first == which; });
      TestSequence& sequence = sequences[which];
      const uint32_t count = std::min(static_cast<uint32_t>(random() % 4), kLength - sequence.length);
      if (twice || count == 0) continue;
      step.append(sequence, slice(all[which], sequence.length, count), true);
      order.emplace_back(which, count);
    }
    const auto done = [](const TestSequence& sequence) { return sequence.length == kLength; };
    if (order.empty() && std::all_of(sequences, sequences + 3, done)) break;
    if (order.empty()) continue;
    const std::vector<float> rows = s.run(step);
    auto row = rows.begin();
    for (const auto& [which, count] : order) {
      logits[which].insert(logits[which].end(), row, row + count * kVocab);
      row += count * kVocab;
    }
  }
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(logits[i], expected(all[i])) << "sequence " << i;
}

TEST_P(SameBits, OnlyTheRowsAsked) {
  const std::vector<int32_t> all = tokens(1);
  const std::vector<float> wanted = expected(all);
  Session s = session(3);
  TestSequence sequence = s.sequence();
  StepData step;
  step.append(sequence, all);
  EXPECT_EQ(s.run(step), std::vector<float>(wanted.end() - kVocab, wanted.end()));
}

TEST_P(SameBits, AfterCopyingRows) {
  const std::vector<int32_t> all = tokens(1);
  const std::vector<float> wanted = expected(all);
  Session s = session(5);
  TestSequence first = s.sequence(), fork = s.sequence();
  StepData prefix;
  prefix.append(first, slice(all, 0, 13));
  s.run(prefix);
  for (uint32_t group = 0; group < 2; ++group) {
    const uint32_t page_tokens = s.spec.groups[group].page_tokens;
    for (uint32_t position = 0; position < 13; position += page_tokens) {
      const uint32_t page = position / page_tokens;
      expect_ok(api().cache_copy_rows(queue.get(), s.cache.get(), group, first.pages[group][page],
                                      fork.pages[group][page], 0, std::min(page_tokens, 13 - position), nullptr),
                {}, "copy");
    }
  }
  fork.length = 13;
  StepData rest;
  rest.append(fork, slice(all, 13, 8), true);
  EXPECT_EQ(s.run(rest), std::vector<float>(wanted.begin() + 13 * kVocab, wanted.end()));
}

TEST_P(SameBits, AfterRewritingATail) {
  const std::vector<int32_t> all = tokens(1);
  const std::vector<float> wanted = expected(all);
  Session s = session(6);
  TestSequence sequence = s.sequence();
  StepData wrong;
  std::vector<int32_t> other = slice(all, 0, 9);
  other.insert(other.end(), 5, 0);
  wrong.append(sequence, other);
  s.run(wrong);
  sequence.length = 9;  // truncated; the rows behind are unowned
  StepData right;
  right.append(sequence, slice(all, 9, 12), true);
  EXPECT_EQ(s.run(right), std::vector<float>(wanted.begin() + 9 * kVocab, wanted.end()));
}

std::string name_of(const ::testing::TestParamInfo<Setting>& setting) {
  const char* types[] = {"", "f32", "f16", "bf16", "q8_0", "q4_0"};
  return std::string(types[setting.param.cache_type]) + "_pages_of_" + std::to_string(setting.param.page_tokens);
}
INSTANTIATE_TEST_SUITE_P(Settings, SameBits,
                         ::testing::Values(Setting{KV_TYPE_F32, 1}, Setting{KV_TYPE_F32, 4}, Setting{KV_TYPE_F32, 16},
                                           Setting{KV_TYPE_F32, 256}, Setting{KV_TYPE_F16, 4}, Setting{KV_TYPE_BF16, 1},
                                           Setting{KV_TYPE_Q8_0, 4}, Setting{KV_TYPE_Q8_0, 256},
                                           Setting{KV_TYPE_Q4_0, 1}),
                         name_of);

}  // namespace
}  // namespace kvasir::testing
