// SPDX-License-Identifier: MIT
//
// Tickets and waits, the stop word, what a cancelled step leaves, and the caller's floating-point state.
#include <atomic>
#include <cfenv>
#include <thread>

#include "ref_fixture.h"
#include "small_model.h"

namespace kvasir::testing {
namespace {

class Queue : public RefTest {
 protected:
  kv_status submit(const kvb_step& step, uint64_t* ticket) {
    return api().queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), out.size(), ticket, &error);
  }
  kv_status wait(uint64_t ticket, uint64_t timeout = 0) {
    return api().queue_wait(queue.get(), ticket, timeout, &error);
  }

  // The step that appends one token to a sequence.
  kvb_step one_token() {
    data = {};
    data.append(sequence, {3});
    return data.view();
  }

  CacheSpec spec = SmallModel::cache(KV_TYPE_F32, 4);
  TestProgram program{device, SmallModel::program({}), spec};
  Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {4, 4});
  TestSequence sequence{0, {{0, 1, 2, 3}, {0, 1, 2, 3}}};
  StepData data;
  std::vector<float> out = std::vector<float>(SmallModel::kVocab, 42.0f);
  kv_error error{};
};

// KVB-23
TEST_F(Queue, TicketsRiseAndAreWaitedForOnce) {
  uint64_t first = 0, second = 0;
  ASSERT_EQ(submit(one_token(), &first), KV_OK);
  ASSERT_EQ(submit(one_token(), &second), KV_OK);
  EXPECT_GT(second, first);
  EXPECT_EQ(wait(second, KVB_WAIT_FOREVER), KV_OK);
  EXPECT_EQ(wait(first), KV_OK);
  EXPECT_EQ(wait(first), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "ticket 1 was waited for already");
  EXPECT_EQ(wait(3), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "ticket 3 of 2");
  EXPECT_EQ(wait(0), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().queue_wait(nullptr, 1, 0, &error), KV_INVALID_ARGUMENT);
}

// KVB-22
TEST_F(Queue, AStoppedStepWritesNothingOut) {
  uint64_t ticket = 0;
  uint32_t stop = 1;
  kvb_step step = one_token();
  step.stop = &stop;
  ASSERT_EQ(submit(step, &ticket), KV_OK);
  EXPECT_EQ(wait(ticket), KV_CANCELLED);
  EXPECT_STREQ(error.message, "the step was asked to stop");
  EXPECT_EQ(out, std::vector<float>(SmallModel::kVocab, 42));
  EXPECT_EQ(wait(ticket), KV_INVALID_ARGUMENT);
  stop = 0;  // the same step again
  ASSERT_EQ(submit(step, &ticket), KV_OK);
  EXPECT_EQ(wait(ticket), KV_OK);
  EXPECT_NE(out[0], 42);
}

// KVB-24.
// The word is set while an op is running (by its trace): the step ends, and no later op is reported.
TEST_F(Queue, StopsInTheMiddle) {
  struct State {
    uint32_t stop = 0;
    uint32_t records = 0;
  } state;
  ProgramBuilder traced = SmallModel::program({});
  traced.flags = KVB_PROGRAM_TRACE;
  const TestProgram traced_program(device, traced, spec);
  kvb_step step = one_token();
  step.stop = &state.stop;
  step.trace_user = &state;
  step.trace = [](void* user, const kvb_trace_record* record) {
    auto* s = static_cast<State*>(user);
    ++s->records;
    if (record->what == KVB_TRACE_SCORES) __atomic_store_n(&s->stop, 1u, __ATOMIC_RELAXED);
  };
  uint64_t ticket = 0;
  ASSERT_EQ(api().queue_submit(queue.get(), traced_program.get(), cache.get(), &step, out.data(), out.size(), &ticket,
                               &error),
            KV_OK);
  EXPECT_EQ(wait(ticket), KV_CANCELLED);
  // Eight values up to and with the second ROPE, then scores and weights of the first head only.
  EXPECT_EQ(state.records, 10u);
  EXPECT_EQ(out[0], 42);
}

TEST_F(Queue, ACancelledStepTouchesOnlyItsOwnPositions) {
  uint64_t ticket = 0;
  ASSERT_EQ(submit(one_token(), &ticket), KV_OK);
  const auto before = read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_K, 0, 0, 1, 12);
  const auto logits_wanted = [&] {
    sequence.length = 1;
    EXPECT_EQ(submit(one_token(), &ticket), KV_OK);
    return out;
  };
  const std::vector<float> wanted = logits_wanted();
  sequence.length = 1;
  uint32_t stop = 1;
  kvb_step step = one_token();
  step.stop = &stop;
  ASSERT_EQ(submit(step, &ticket), KV_OK);
  EXPECT_EQ(wait(ticket), KV_CANCELLED);
  EXPECT_EQ(read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_K, 0, 0, 1, 12), before);
  EXPECT_EQ(logits_wanted(), wanted);
}

// KVB-6
TEST_F(Queue, KeepsTheCallersFloatingPointState) {
  uint64_t ticket = 0;
  ASSERT_EQ(submit(one_token(), &ticket), KV_OK);
  const std::vector<float> wanted = out;
  sequence.length = 0;
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_UPWARD);
  const kv_status status = submit(one_token(), &ticket);
  const int rounding = std::fegetround();
  const int raised = std::fetestexcept(FE_INEXACT);
  std::fesetround(FE_TONEAREST);
  ASSERT_EQ(status, KV_OK);
  EXPECT_EQ(rounding, FE_UPWARD);
  EXPECT_EQ(raised, 0);
  EXPECT_EQ(out, wanted);  // computed in round-to-nearest all the same
}

// KVB-10
TEST_F(Queue, QueuesOnTwoThreads) {
  std::vector<float> results[2];
  const auto work = [&](uint32_t which) {
    const TestProgram own_program(device, SmallModel::program({}), spec);
    const Owned<kvb_queue> own_queue = device.queue();
    const Owned<kvb_cache> own_cache = make_cache(device, own_queue.get(), spec, {4, 4});
    TestSequence own_sequence{0, {{0, 1, 2, 3}, {0, 1, 2, 3}}};
    for (uint32_t i = 0; i < 12; ++i) {
      StepData step;
      step.append(own_sequence, {static_cast<int32_t>(i % 7)});
      results[which] = run_step(device, own_queue.get(), own_program, own_cache.get(), step);
    }
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0].size(), size_t{SmallModel::kVocab});
}

TEST_F(Queue, OptionsOfAnotherSize) {
  const kvb_queue_options options{4, 99};  // too short to hold `threads`
  kvb_queue* created = nullptr;
  ASSERT_EQ(api().queue_create(device.get(), &options, &created, &error), KV_OK) << error.message;
  api().queue_destroy(created);
  const kvb_queue_options broken{0, 0};
  EXPECT_EQ(api().queue_create(device.get(), &broken, &created, &error), KV_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvasir::testing
