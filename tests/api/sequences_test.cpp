// SPDX-License-Identifier: MIT
//
// Sequences as an application uses them: fork inside a page, neighbours, edges of the capacity, what a refused call leaves
// behind. (Cases P03, P06, P07, P08, P09, P10, P11, P24.)
#include <cstring>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Sequences : public testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  Error e;

  kv_context_options options(uint64_t max_tokens, uint32_t page_tokens = 0, uint32_t batch = 0) {
    kv_context_options o = sized<kv_context_options>();
    o.device = GetParam().c_str();
    o.max_tokens = max_tokens;
    o.page_tokens = page_tokens;
    o.max_batch_tokens = batch;
    o.k_type = o.v_type = KV_TYPE_F32;
    o.flags = KV_CONTEXT_POISON;
    return o;
  }
  ContextPtr context(uint64_t max_tokens, uint32_t page_tokens = 0, uint32_t batch = 0) {
    return make_context(model_.get(), options(max_tokens, page_tokens, batch));
  }
  // Logits of a context that has seen nothing else.
  std::vector<float> reference(const std::vector<int32_t>& tokens) {
    return prefill(context(tokens.size()).get(), KV_DEFAULT_SEQUENCE, tokens);
  }
};

TEST_P(Sequences, ForkInsideAPage) {
  for (const uint32_t page : {4U, 1U, 256U}) {
    const ContextPtr c = context(64, page);
    const std::vector<int32_t> tokens = random_tokens(10, 64, 1);
    prefill(c.get(), KV_DEFAULT_SEQUENCE, tokens);
    kv_sequence fork = 0;
    OK(kv_sequence_fork(c.get(), KV_DEFAULT_SEQUENCE, 7, &fork, &e));
    EXPECT_EQ(length_of(c.get(), fork), 7U);
    std::vector<int32_t> mine = tokens, theirs(tokens.begin(), tokens.begin() + 7);
    for (int32_t step = 0; step < 5; step++) {
      mine.push_back(step);
      theirs.push_back(63 - step);
      EXPECT_TRUE(same_bits(decode(c.get(), KV_DEFAULT_SEQUENCE, step), reference(mine))) << "page " << page;
      EXPECT_TRUE(same_bits(decode(c.get(), fork, 63 - step), reference(theirs))) << "page " << page;
    }
    // The parent dies, the fork lives on.
    OK(kv_sequence_release(c.get(), KV_DEFAULT_SEQUENCE, &e));
    theirs.push_back(5);
    EXPECT_TRUE(same_bits(decode(c.get(), fork, 5), reference(theirs)));
  }
}

TEST_P(Sequences, NeighboursAreNotFelt) {
  const std::vector<int32_t> prompt = random_tokens(12, 64, 2);
  std::vector<std::vector<float>> alone;
  {
    const ContextPtr c = context(256);
    prefill(c.get(), KV_DEFAULT_SEQUENCE, prompt);
    for (int32_t t = 0; t < 10; t++) alone.push_back(decode(c.get(), KV_DEFAULT_SEQUENCE, t));
  }
  for (const size_t others : {1U, 3U, 7U}) {
    const ContextPtr c = context(512);
    prefill(c.get(), KV_DEFAULT_SEQUENCE, prompt);
    std::vector<kv_decode_input> inputs = {{KV_DEFAULT_SEQUENCE, 0, 0}};
    for (size_t i = 0; i < others; i++) {
      kv_sequence other = 0;
      OK(kv_sequence_create(c.get(), &other, &e));
      prefill(c.get(), other, random_tokens(3 + 5 * i, 64, static_cast<uint32_t>(i)));
      inputs.insert(inputs.begin() + static_cast<ptrdiff_t>(i % 2), {other, 9, 0});
    }
    for (int32_t t = 0; t < 10; t++) {
      if (t == 6 && inputs.size() > 2) {  // one neighbour leaves
        const auto gone = std::find_if(inputs.begin(), inputs.end(), [](const auto& in) { return in.sequence != 0; });
        OK(kv_sequence_release(c.get(), gone->sequence, &e));
        inputs.erase(gone);
      }
      for (kv_decode_input& in : inputs) in.token = in.sequence == KV_DEFAULT_SEQUENCE ? t : (t * 7) % 64;
      std::vector<kv_step_result> results(inputs.size(), sized<kv_step_result>());
      OK(kv_decode_step(c.get(), inputs.data(), inputs.size(), nullptr, results.data(), &e));
      for (size_t i = 0; i < inputs.size(); i++) {
        if (inputs[i].sequence != KV_DEFAULT_SEQUENCE) continue;
        EXPECT_TRUE(same_bits({results[i].rows, results[i].rows + results[i].width}, alone[static_cast<size_t>(t)]))
            << others << " neighbours, step " << t;
      }
    }
  }
}

TEST_P(Sequences, PromptThatDoesNotFitIsRefusedWithBothNumbers) {
  for (const size_t count : {17U, 32U, 1000U}) {
    const ContextPtr c = context(16);
    const std::vector<int32_t> tokens = random_tokens(count, 64, 3);
    FAILS(KV_CONTEXT_FULL, std::to_string(count) + " tokens do not fit: 16 of 16",
          kv_prefill(c.get(), KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), nullptr, nullptr, &e));
    EXPECT_EQ(length_of(c.get(), KV_DEFAULT_SEQUENCE), 0U);
    const std::vector<int32_t> fits(tokens.begin(), tokens.begin() + 16);
    EXPECT_TRUE(same_bits(prefill(c.get(), KV_DEFAULT_SEQUENCE, fits), reference(fits)));
  }
}

TEST_P(Sequences, ExactlyAtTheEdge) {
  const std::vector<int32_t> tokens = random_tokens(17, 64, 4);
  const int32_t last = tokens[15], extra = tokens[16];
  for (const uint32_t page : {1U, 4U, 16U, 256U}) {
    const ContextPtr c = context(16, page);
    prefill(c.get(), KV_DEFAULT_SEQUENCE, {tokens.begin(), tokens.begin() + 15});
    const std::vector<float> full = decode(c.get(), KV_DEFAULT_SEQUENCE, last);
    FAILS(KV_CONTEXT_FULL, "1 tokens do not fit: 0 of 16",
          kv_prefill(c.get(), KV_DEFAULT_SEQUENCE, &extra, 1, nullptr, nullptr, &e));
    OK(kv_sequence_truncate(c.get(), KV_DEFAULT_SEQUENCE, 15, &e));
    EXPECT_TRUE(same_bits(decode(c.get(), KV_DEFAULT_SEQUENCE, last), full));
    EXPECT_TRUE(same_bits(full, reference({tokens.begin(), tokens.begin() + 16})));
  }
  const ContextPtr one = context(1);
  EXPECT_TRUE(same_bits(prefill(one.get(), KV_DEFAULT_SEQUENCE, {5}), reference({5})));
  FAILS(KV_CONTEXT_FULL, "0 of 1", kv_prefill(one.get(), KV_DEFAULT_SEQUENCE, &extra, 1, nullptr, nullptr, &e));
}

TEST_P(Sequences, CapacityCountsSharedTokensOnce) {
  const ContextPtr c = context(20, 4);
  prefill(c.get(), KV_DEFAULT_SEQUENCE, random_tokens(14, 64, 5));
  kv_sequence fork = 0;
  OK(kv_sequence_fork(c.get(), KV_DEFAULT_SEQUENCE, 14, &fork, &e));
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_EQ(info.pages_used, 4U);
  EXPECT_EQ(info.pages_shared, 4U);
  EXPECT_EQ(info.free_tokens, 6U);
  // Appending to the fork copies the two rows of the shared last page: 6 left, 2 copied, 4 new.
  const std::vector<int32_t> four = random_tokens(4, 64, 6), five = random_tokens(5, 64, 6);
  FAILS(KV_CONTEXT_FULL, "5 tokens do not fit: 4 of 20",
        kv_prefill(c.get(), fork, five.data(), five.size(), nullptr, nullptr, &e));
  prefill(c.get(), fork, four);
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_EQ(info.free_tokens, 0U);
  EXPECT_EQ(info.pages_shared, 3U);
  OK(kv_sequence_release(c.get(), fork, &e));
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_EQ(info.free_tokens, 6U);
  OK(kv_sequence_release(c.get(), KV_DEFAULT_SEQUENCE, &e));
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_EQ(info.free_tokens, 20U);
  EXPECT_EQ(info.pages_used, 0U);
}

TEST_P(Sequences, OneFullSequenceDoesNotSpoilTheOthers) {
  const ContextPtr c = context(16);
  kv_sequence other = 0;
  OK(kv_sequence_create(c.get(), &other, &e));
  const std::vector<int32_t> big = random_tokens(20, 64, 8), small = random_tokens(5, 64, 9);
  kv_step_input inputs[3] = {sized<kv_step_input>(), sized<kv_step_input>(), sized<kv_step_input>()};
  inputs[0].sequence = KV_DEFAULT_SEQUENCE;
  inputs[0].tokens = big.data();
  inputs[0].count = big.size();
  inputs[1].sequence = other;
  inputs[1].tokens = small.data();
  inputs[1].count = small.size();
  inputs[2].sequence = 99;
  inputs[2].tokens = small.data();
  inputs[2].count = 1;
  kv_step_result results[3] = {sized<kv_step_result>(), sized<kv_step_result>(), sized<kv_step_result>()};
  FAILS(KV_CONTEXT_FULL, "20 tokens do not fit", kv_step(c.get(), inputs, 3, nullptr, results, &e));
  EXPECT_EQ(results[0].status, KV_CONTEXT_FULL);
  EXPECT_EQ(results[0].rows, nullptr);
  EXPECT_EQ(results[0].length, 0U);
  ASSERT_EQ(results[1].status, KV_OK);
  EXPECT_EQ(results[1].length, 5U);
  EXPECT_EQ(results[1].computed, 5U);
  EXPECT_EQ(results[2].status, KV_INVALID_ARGUMENT);
  EXPECT_STREQ(results[2].message, "sequence 99 does not exist");
  EXPECT_TRUE(same_bits({results[1].rows, results[1].rows + results[1].width}, reference(small)));
}

TEST_P(Sequences, PromptsLongerThanTheBatchAreSplit) {
  for (const uint32_t batch : {1U, 4U}) {
    for (const size_t count : {5U, 8U, 9U, 63U}) {
      const std::vector<int32_t> tokens = random_tokens(count, 64, 10);
      const ContextPtr c = context(64, 0, batch);
      EXPECT_TRUE(same_bits(prefill(c.get(), KV_DEFAULT_SEQUENCE, tokens), reference(tokens))) << batch << " " << count;
    }
  }
}

TEST_P(Sequences, PoisonedCellsAreNeverRead) {
  const ContextPtr c = context(64, 16);
  std::vector<int32_t> tokens = random_tokens(3, 64, 11);
  prefill(c.get(), KV_DEFAULT_SEQUENCE, tokens);
  for (int32_t t = 0; t < 3; t++) {
    tokens.push_back(t);
    EXPECT_TRUE(same_bits(decode(c.get(), KV_DEFAULT_SEQUENCE, t), reference(tokens)));
  }
  OK(kv_sequence_truncate(c.get(), KV_DEFAULT_SEQUENCE, 2, &e));
  tokens.resize(2);
  for (int32_t t = 40; t < 60; t++) {  // into pages that were freed and poisoned
    tokens.push_back(t);
    EXPECT_TRUE(same_bits(decode(c.get(), KV_DEFAULT_SEQUENCE, t), reference(tokens)));
  }
}

TEST_P(Sequences, RowsOfTheCacheCanBeRead) {
  const ContextPtr c = context(64, 4);
  prefill(c.get(), KV_DEFAULT_SEQUENCE, random_tokens(11, 64, 12));
  std::vector<float> all(11 * 16), part(3 * 16);
  OK(kv_cache_read(c.get(), KV_DEFAULT_SEQUENCE, 1, KV_CACHE_V, 0, 11, all.data(), all.size(), &e));
  OK(kv_cache_read(c.get(), KV_DEFAULT_SEQUENCE, 1, KV_CACHE_V, 6, 3, part.data(), part.size(), &e));
  EXPECT_EQ(0, std::memcmp(part.data(), &all[6 * 16], part.size() * sizeof(float)));
  FAILS(KV_INVALID_ARGUMENT, "holds 11",
        kv_cache_read(c.get(), KV_DEFAULT_SEQUENCE, 1, KV_CACHE_V, 9, 3, part.data(), part.size(), &e));
  FAILS(KV_INVALID_ARGUMENT, "layer 2",
        kv_cache_read(c.get(), KV_DEFAULT_SEQUENCE, 2, KV_CACHE_V, 0, 1, part.data(), part.size(), &e));
  FAILS(KV_BUFFER_TOO_SMALL, "4 rows of 16",
        kv_cache_read(c.get(), KV_DEFAULT_SEQUENCE, 0, KV_CACHE_K, 0, 4, part.data(), part.size(), &e));
}

TEST_P(Sequences, ManyShortSequencesStayWithinTheBound) {
  // 64 tokens in pages of 16: 4 pages, and one partly empty page for each of the 15 further sequences of a step.
  const ContextPtr c = context(64, 16);
  kv_status status = KV_OK;
  uint64_t held = 0;
  for (int i = 0; i < 40 && status == KV_OK; i++) {
    kv_sequence s = 0;
    OK(kv_sequence_create(c.get(), &s, &e));
    const int32_t token = 3;
    status = kv_prefill(c.get(), s, &token, 1, nullptr, nullptr, &e);
    if (status == KV_OK) held++;
  }
  EXPECT_EQ(status, KV_CONTEXT_FULL) << e.message;
  EXPECT_EQ(held, 4U + 15U);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_P(Sequences, AThousandRoundsDoNotGrow) {
  if (kSanitized) GTEST_SKIP() << "sanitizers hold freed memory back; the leak checker judges instead";
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    long total = 0, pages = 0;
    file >> total >> pages;
    return pages * 4096;
  };
  long early = 0;
  for (int round = 0; round < 1000; round++) {
    const ContextPtr c = context(64);
    prefill(c.get(), KV_DEFAULT_SEQUENCE, {1, 2, 3, 4, 5, 6, 7, 8});
    if (round == 100) early = resident();
  }
  EXPECT_LT(resident() - early, 4 << 20);
}

INSTANTIATE_TEST_SUITE_P(Backends, Sequences, testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
