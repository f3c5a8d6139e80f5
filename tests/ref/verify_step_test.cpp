// SPDX-License-Identifier: MIT
//
// Malformed steps: each field broken once, with the status and the sentence; random breakage; and that a refused step
// leaves no ticket, no row and no output behind.
#include <functional>
#include <random>
#include <string>

#include "ref_fixture.h"
#include "small_model.h"

namespace kvasir::testing {
namespace {

class VerifyStep : public RefTest {
 protected:
  // Two sequences, of 6 tokens (four new) and 3 (one new), pages of 4; the second group's window is 5.
  VerifyStep() {
    TestSequence first{2, {{0, 1}, {1, 0}}}, second{2, {{2}, {2}}};
    data.append(first, {1, data.embed(std::vector<float>(SmallModel::kDim, 0.5f)), 3, 4});
    data.append(second, {5});
  }

  kv_status submit(const kvb_step& step) {
    ticket = 0;
    return api().queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), out.size(), &ticket, &error);
  }

  void refused(const std::function<void(StepData&, kvb_step&)>& change, kv_status status, const std::string& sentence) {
    StepData broken = data;
    kvb_step step = broken.view();
    change(broken, step);
    out.assign(out.size(), 42);
    error = {};
    EXPECT_EQ(submit(step), status) << sentence;
    EXPECT_NE(std::string(error.message).find(sentence), std::string::npos)
        << error.message << "\n  wanted: " << sentence;
    EXPECT_EQ(ticket, 0u);
    for (const float value : out) EXPECT_EQ(value, 42);
    EXPECT_EQ(read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_K, 0, 2, 1, 12), std::vector<float>(12));
  }

  CacheSpec spec = SmallModel::cache(KV_TYPE_F32, 4);
  TestProgram program{device, SmallModel::program({}), spec};
  Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {3, 3});
  StepData data;
  std::vector<float> out = std::vector<float>(2 * SmallModel::kVocab);
  uint64_t ticket = 0;
  kv_error error{};
};

TEST_F(VerifyStep, AcceptsTheStep) {
  const kvb_step step = data.view();
  ASSERT_EQ(submit(step), KV_OK) << error.message;
  EXPECT_EQ(api().queue_wait(queue.get(), ticket, 0, &error), KV_OK);
}

// KVB-7, KVB-11, for this and the tests below.
TEST_F(VerifyStep, Counts) {
  refused([](auto&, kvb_step& s) { s.struct_size = 3; }, KV_INVALID_ARGUMENT, "struct_size 3");
  refused([](auto&, kvb_step& s) { s.token_count = 0; }, KV_INVALID_ARGUMENT, "the step has 0 tokens");
  refused([](auto&, kvb_step& s) { s.token_count = 17; }, KV_INVALID_ARGUMENT, "the step has 17 tokens");
  refused([](auto&, kvb_step& s) { s.sequence_count = 0; }, KV_INVALID_ARGUMENT, "the step has 0 sequences");
  refused([](auto&, kvb_step& s) { s.sequence_count = 5; }, KV_INVALID_ARGUMENT, "the step has 5 sequences");
  refused([](auto&, kvb_step& s) { s.sequence_count = 1; }, KV_INVALID_ARGUMENT, "token 4 is of sequence 1 of 1");
  refused([](auto&, kvb_step& s) { s.output_count = 17; }, KV_INVALID_ARGUMENT, "17 output rows");
  refused([](auto&, kvb_step& s) { s.group_count = 1; }, KV_INVALID_ARGUMENT, "page tables for 1 cache groups of 2");
  refused([](auto&, kvb_step& s) { s.group_count = 3; }, KV_INVALID_ARGUMENT, "page tables for 3 cache groups of 2");
}

TEST_F(VerifyStep, Pointers) {
  refused([](auto&, kvb_step& s) { s.tokens = nullptr; }, KV_INVALID_ARGUMENT, "is NULL");
  refused([](auto&, kvb_step& s) { s.positions = nullptr; }, KV_INVALID_ARGUMENT, "is NULL");
  refused([](auto&, kvb_step& s) { s.sequence_of = nullptr; }, KV_INVALID_ARGUMENT, "is NULL");
  refused([](auto&, kvb_step& s) { s.lengths = nullptr; }, KV_INVALID_ARGUMENT, "is NULL");
  refused([](auto&, kvb_step& s) { s.tables = nullptr; }, KV_INVALID_ARGUMENT, "no page tables");
  refused([](auto&, kvb_step& s) { s.output_rows = nullptr; }, KV_INVALID_ARGUMENT, "output_rows");
  refused([](auto&, kvb_step& s) { s.embeddings = nullptr; }, KV_INVALID_ARGUMENT, "embedding row 0 of 0");
  refused([](auto&, kvb_step& s) { s.reserved_components = &s; }, KV_UNSUPPORTED, "reserved");
  refused([](auto&, kvb_step& s) { s.reserved_parents = &s; }, KV_UNSUPPORTED, "reserved");
  refused([](auto&, kvb_step& s) { s.reserved_hidden = &s; }, KV_UNSUPPORTED, "reserved");
}

TEST_F(VerifyStep, Tokens) {
  refused([](StepData& d, auto&) { d.tokens[0] = 11; }, KV_INVALID_ARGUMENT,
          "token 0 has id 11, the vocabulary has 11");
  refused([](StepData& d, auto&) { d.tokens[2] = ~1; }, KV_INVALID_ARGUMENT, "token 2 refers to embedding row 1 of 1");
  refused([](StepData& d, auto&) { d.tokens[4] = INT32_MIN; }, KV_INVALID_ARGUMENT, "embedding row 2147483647 of 1");
  refused([](auto&, kvb_step& s) { s.embedding_count = 0; }, KV_INVALID_ARGUMENT, "embedding row 0 of 0");
}

TEST_F(VerifyStep, SequencesAndPositions) {
  refused([](StepData& d, auto&) { d.sequence_of[4] = 2; }, KV_INVALID_ARGUMENT, "token 4 is of sequence 2 of 2");
  refused([](StepData& d, auto&) { d.sequence_of[1] = 1; }, KV_INVALID_ARGUMENT, "end at position 2, its length is 6");
  refused(
      [](StepData& d, auto&) {
        d.sequence_of = {0, 1, 0, 0, 0};
        d.positions = {5, 2, 3, 4, 5};
      },
      KV_INVALID_ARGUMENT, "the tokens of sequence 0 are not adjacent (token 2)");
  refused([](StepData& d, auto&) { d.positions[1] = 4; }, KV_INVALID_ARGUMENT,
          "token 1 of sequence 0 is at position 4 instead of 3");
  refused([](StepData& d, auto&) { d.positions[4] = UINT32_MAX; }, KV_INVALID_ARGUMENT, "end at position 4294967295");
  refused([](StepData& d, auto&) { d.lengths[1] = 2; }, KV_INVALID_ARGUMENT, "its length is 2");
  refused([](StepData& d, auto&) { d.lengths[0] = 65; }, KV_INVALID_ARGUMENT,
          "has length 65, the program takes at most 64");
}

TEST_F(VerifyStep, PageTables) {
  const auto table = [](kvb_step& s, uint32_t group) -> kvb_page_table& {
    return const_cast<kvb_page_table&>(s.tables[group]);
  };
  refused([&](auto&, kvb_step& s) { table(s, 0).pages = nullptr; }, KV_INVALID_ARGUMENT, "page table 0 is NULL");
  refused([&](auto&, kvb_step& s) { table(s, 1).reserved = 1; }, KV_UNSUPPORTED, "page table 1 sets a reserved field");
  refused([&](auto&, kvb_step& s) { table(s, 0).pages_per_sequence = 1; }, KV_INVALID_ARGUMENT,
          "page table 0 has 1 pages of 4 tokens for sequence 0 of length 6");
  refused([&](auto&, kvb_step& s) { const_cast<uint32_t&>(table(s, 0).pages[1]) = 3; }, KV_INVALID_ARGUMENT,
          "page table 0 gives page 3 to sequence 0 at position 4, the cache has 3");
  refused([&](auto&, kvb_step& s) { const_cast<uint32_t&>(table(s, 0).pages[0]) = KVB_NONE; }, KV_INVALID_ARGUMENT,
          "gives page 4294967295 to sequence 0 at position 0");
}

TEST_F(VerifyStep, UnreachablePagesMayBeAbsent) {
  TestSequence sequence{8, {{0, 1, 2}, {KVB_NONE, 0, 1}}};  // window 5 at position 8: from 4
  StepData step;
  step.append(sequence, {1});
  EXPECT_EQ(submit(step.view()), KV_OK) << error.message;
  sequence = {7, {{0, 1}, {KVB_NONE, 0}}};  // position 7 reaches 3
  StepData earlier;
  earlier.append(sequence, {1});
  EXPECT_EQ(submit(earlier.view()), KV_INVALID_ARGUMENT);
}

TEST_F(VerifyStep, Outputs) {
  refused([](StepData& d, auto&) { d.output_rows[1] = 5; }, KV_INVALID_ARGUMENT, "output 1 is row 5 of 5");
  refused([](StepData& d, auto&) { d.output_rows = {4, 3}; }, KV_INVALID_ARGUMENT, "");
  refused([](StepData& d, auto&) { d.output_rows[1] = d.output_rows[0]; }, KV_INVALID_ARGUMENT,
          "output 1 is row 3 after row 3; they must rise");
  const kvb_step step = data.view();
  EXPECT_EQ(api().queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), 21, &ticket, &error),
            KV_BUFFER_TOO_SMALL);
  EXPECT_STREQ(error.message, "out holds 21 floats, the step gives 22");
  EXPECT_EQ(api().queue_submit(queue.get(), program.get(), cache.get(), &step, nullptr, 22, &ticket, &error),
            KV_INVALID_ARGUMENT);
}

TEST_F(VerifyStep, Objects) {
  const kvb_step step = data.view();
  const auto submit_to = [&](kvb_queue* q, kvb_program* p, kvb_cache* c, const kvb_step* s, uint64_t* t) {
    return api().queue_submit(q, p, c, s, out.data(), out.size(), t, &error);
  };
  EXPECT_EQ(submit_to(nullptr, program.get(), cache.get(), &step, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_EQ(submit_to(queue.get(), nullptr, cache.get(), &step, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_EQ(submit_to(queue.get(), program.get(), nullptr, &step, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_EQ(submit_to(queue.get(), program.get(), cache.get(), nullptr, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_EQ(submit_to(queue.get(), program.get(), cache.get(), &step, nullptr), KV_INVALID_ARGUMENT);
  const CacheSpec other = SmallModel::cache(KV_TYPE_F16, 4);
  const Owned<kvb_cache> other_cache = make_cache(device, queue.get(), other, {3, 3});
  EXPECT_EQ(submit_to(queue.get(), program.get(), other_cache.get(), &step, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the program was compiled for a cache of another description");
  TestHost second_host;
  const TestDevice second(ref_query(), second_host);
  const Owned<kvb_queue> second_queue = second.queue();
  EXPECT_EQ(submit_to(second_queue.get(), program.get(), cache.get(), &step, &ticket), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the program or the cache is of another device than the queue");
}

// Random words in the arrays of a step: refused or run, never out of bounds.
TEST_F(VerifyStep, RandomBreakage) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  uint32_t accepted = 0;
  for (uint32_t round = 0; round < 4000; ++round) {
    StepData broken = data;
    kvb_step step = broken.view();
    for (uint32_t changes = 1 + random() % 2; changes > 0; --changes) {
      const uint32_t value = random() % 3 == 0 ? KVB_NONE - random() % 3 : random() % 9;
      switch (random() % 6) {
        case 0: broken.tokens[random() % 5] = static_cast<int32_t>(value); break;
        case 1: broken.positions[random() % 5] = value; break;
        case 2: broken.sequence_of[random() % 5] = value; break;
        case 3: broken.lengths[random() % 2] = value; break;
        case 4: broken.output_rows[random() % 2] = value; break;
        default: const_cast<uint32_t&>(step.tables[random() % 2].pages[random() % 4]) = value; break;
      }
    }
    error = {};
    if (submit(step) == KV_OK) {
      ++accepted;
      ASSERT_EQ(api().queue_wait(queue.get(), ticket, 0, &error), KV_OK);
    } else {
      ASSERT_NE(error.message[0], '\0');
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 4000u);
}

}  // namespace
}  // namespace kvasir::testing
