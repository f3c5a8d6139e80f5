// SPDX-License-Identifier: MIT
//
// The queue: tickets, stopping at every stage, failed steps, traces, executors, a forked child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <map>

#include "random_model.h"

namespace kvasir::testing {
namespace {

TEST(Queue, TicketsRiseAndAreWaitedForOnce) {
  ModelShape shape;
  Rig rig(shape);
  const kvb_api& api = *rig.device().api;
  kv_error error{};
  uint64_t tickets[2];
  std::vector<float> out(shape.vocab);
  for (uint64_t& ticket : tickets) {
    StepData data;
    rig.fill(data, {{0, {1}}});
    const kvb_step step = data.view();
    ASSERT_EQ(
        api.queue_submit(rig.queue(), rig.program().get(), rig.cache(), &step, out.data(), out.size(), &ticket, &error),
        KV_OK);
  }
  EXPECT_LT(tickets[0], tickets[1]);
  EXPECT_EQ(api.queue_wait(rig.queue(), tickets[1], 0, &error), KV_OK);
  EXPECT_EQ(api.queue_wait(rig.queue(), tickets[0], KVB_WAIT_FOREVER, &error), KV_OK);
  EXPECT_EQ(api.queue_wait(rig.queue(), tickets[0], 0, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api.queue_wait(rig.queue(), tickets[1] + 1, 0, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api.queue_wait(nullptr, 1, 0, &error), KV_INVALID_ARGUMENT);
}

TEST(Queue, BadStepsAreRefusedAndChangeNothing) {
  ModelShape shape;
  Rig rig(shape), other(shape);
  const kvb_api& api = *rig.device().api;
  kv_error error{};
  uint64_t ticket = 99;
  std::vector<float> out(shape.vocab, 5.0f);
  StepData data;
  rig.fill(data, {{0, {1, 2, 3}}});
  const auto status = [&](auto change) {
    kvb_step step = data.view();
    change(step);
    return api.queue_submit(rig.queue(), rig.program().get(), rig.cache(), &step, out.data(), out.size(), &ticket,
                            &error);
  };
  const uint32_t wrong_positions[] = {0, 2, 3};
  const int32_t wrong_tokens[] = {1, 2, 40};
  EXPECT_EQ(status([&](kvb_step& step) { step.positions = wrong_positions; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([&](kvb_step& step) { step.tokens = wrong_tokens; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](kvb_step& step) { step.token_count = 0; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](kvb_step& step) { step.tables = nullptr; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](kvb_step& step) { step.reserved_parents = &step; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](kvb_step& step) { step.struct_size = 1; }), KV_INVALID_ARGUMENT);
  kvb_step step = data.view();
  EXPECT_EQ(api.queue_submit(rig.queue(), rig.program().get(), rig.cache(), &step, out.data(), 3, &ticket, &error),
            KV_BUFFER_TOO_SMALL);
  EXPECT_EQ(
      api.queue_submit(rig.queue(), rig.program().get(), other.cache(), &step, out.data(), out.size(), &ticket, &error),
      KV_INVALID_ARGUMENT);
  EXPECT_EQ(ticket, 99u);
  EXPECT_EQ(out, std::vector<float>(shape.vocab, 5.0f));
}

// An executor sets the stop word when a given stage begins; a stage is a call of the executor.
struct StopAt {
  uint32_t stop = 0;
  int64_t stages_left = 0;

  static void executor(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
    StopAt& self = *static_cast<StopAt*>(user);
    if (self.stages_left-- == 0) __atomic_store_n(&self.stop, 1u, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) body(arg, i);
  }
};

TEST(Queue, StopAtEveryStage) {
  ModelShape shape;
  shape.page_tokens = 16;
  StopAt at;
  TestHost host;
  host.table.parallel_for = StopAt::executor;
  host.table.parallel_user = &at;
  const TestDevice device(query_of("cpu"), host);
  if (device.query(KVB_QUERY_DEFAULT_THREADS) < 2) GTEST_SKIP() << "one processor: stages do not go to the executor";
  const Owned<kvb_queue> queue = device.queue();
  const CacheSpec spec = cache_of(shape);
  const TestProgram program(device, RandomModel(shape).build(), spec);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {4});
  const auto tokens = random_tokens(30, shape.vocab, 3);
  const auto submit = [&](uint32_t from, uint32_t to, std::vector<float>& out) {
    kv_error error{};
    TestSequence sequence{from, {{2, 0}}};
    StepData data;
    data.append(sequence, {tokens.begin() + from, tokens.begin() + to});
    kvb_step step = data.view();
    step.stop = &at.stop;
    uint64_t ticket = 0;
    out.assign(shape.vocab, -1.0f);
    EXPECT_EQ(device.api->queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), out.size(), &ticket,
                                       &error),
              KV_OK);
    return device.api->queue_wait(queue.get(), ticket, KVB_WAIT_FOREVER, &error);
  };
  at.stages_left = -1;
  std::vector<float> out, first;
  ASSERT_EQ(submit(0, 10, first), KV_OK);
  ASSERT_EQ(submit(10, 30, out), KV_OK);
  const std::vector<float> want = out;
  const auto kept = read_cache(device, queue.get(), cache.get(), 1, KVB_ROWS_V, 2, 0, 10, 32);
  uint32_t cancelled = 0;
  for (int64_t stage = 0;; stage++) {
    at.stages_left = stage;
    at.stop = 0;
    const kv_status status = submit(10, 30, out);
    const bool reached = at.stages_left < 0;
    at.stages_left = -1;
    at.stop = 0;
    if (!reached) break;  // the step has fewer stages
    if (status == KV_CANCELLED) {
      cancelled++;
      EXPECT_EQ(out, std::vector<float>(shape.vocab, -1.0f)) << "stage " << stage;
    } else {
      EXPECT_EQ(status, KV_OK) << "stage " << stage;
      EXPECT_TRUE(same_bits(out, want));
    }
    EXPECT_EQ(read_cache(device, queue.get(), cache.get(), 1, KVB_ROWS_V, 2, 0, 10, 32), kept);
    ASSERT_EQ(submit(10, 30, out), KV_OK);
    EXPECT_TRUE(same_bits(out, want)) << "after stopping at stage " << stage;
  }
  EXPECT_GT(cancelled, 10u);
}

// The word goes back to zero while the stage that saw it still runs: what was skipped is not forgotten.
TEST(Queue, AStopTakenBackStillStops) {
  struct Blink {
    uint32_t stop = 0;
    int64_t stages_left = 0;
    static void executor(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
      Blink& self = *static_cast<Blink*>(user);
      if (self.stages_left-- == 0) __atomic_store_n(&self.stop, 1u, __ATOMIC_RELAXED);
      for (uint32_t i = 0; i < count; i++) body(arg, i);
      __atomic_store_n(&self.stop, 0u, __ATOMIC_RELAXED);
    }
  } blink;
  ModelShape shape;
  TestHost host;
  host.table.parallel_for = Blink::executor;
  host.table.parallel_user = &blink;
  const TestDevice device(query_of("cpu"), host);
  if (device.query(KVB_QUERY_DEFAULT_THREADS) < 2) GTEST_SKIP() << "one processor: stages do not go to the executor";
  const Owned<kvb_queue> queue = device.queue();
  const CacheSpec spec = cache_of(shape);
  const TestProgram program(device, RandomModel(shape).build(), spec);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {1});
  TestSequence sequence{0, {{0}}};
  StepData data;
  data.append(sequence, random_tokens(30, shape.vocab, 3));
  kvb_step step = data.view();
  step.stop = &blink.stop;
  kv_error error{};
  uint64_t ticket = 0;
  std::vector<float> out(shape.vocab);
  blink.stages_left = 3;
  ASSERT_EQ(
      device.api->queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), out.size(), &ticket, &error),
      KV_OK);
  EXPECT_EQ(device.api->queue_wait(queue.get(), ticket, KVB_WAIT_FOREVER, &error), KV_CANCELLED);
}

TEST(Queue, StopBeforeTheStart) {
  ModelShape shape;
  Rig rig(shape);
  kv_error error{};
  const uint32_t stop = 1;
  StepData data;
  rig.fill(data, {{0, {1, 2}}});
  kvb_step step = data.view();
  step.stop = &stop;
  uint64_t ticket = 0;
  std::vector<float> out(shape.vocab, 3.0f);
  ASSERT_EQ(rig.device().api->queue_submit(rig.queue(), rig.program().get(), rig.cache(), &step, out.data(), out.size(),
                                           &ticket, &error),
            KV_OK);
  EXPECT_EQ(rig.device().api->queue_wait(rig.queue(), ticket, 0, &error), KV_CANCELLED);
  EXPECT_EQ(out, std::vector<float>(shape.vocab, 3.0f));
}

// What a traced step reports, as one flat map.
struct Traced {
  std::map<std::vector<uint32_t>, std::vector<float>> records;  // (what, op, token, head, first position)

  static void record(void* user, const kvb_trace_record* r) {
    const float* end = r->data + size_t{r->rows} * r->width;
    static_cast<Traced*>(user)->records[{r->what, r->op, r->token, r->head, r->first_position}] = {r->data, end};
  }
};

TEST(Queue, TracesWhatTheReferenceTraces) {
  ModelShape shape;
  shape.traced = true;
  shape.window = 7;
  shape.page_tokens = 4;
  const auto tokens = random_tokens(13, shape.vocab, 8);
  Traced traced[2];
  std::vector<float> out[2];
  for (const int i : {0, 1}) {
    Rig rig(shape, {i == 0 ? "cpu" : "ref"});
    StepData data;
    data.trace = Traced::record;
    data.trace_user = &traced[i];
    rig.fill(data, {{0, tokens}});
    out[i] = run_step(rig.device(), rig.queue(), rig.program(), rig.cache(), data);
  }
  ASSERT_EQ(traced[0].records.size(), traced[1].records.size());
  for (const auto& [key, want] : traced[1].records) {
    ASSERT_TRUE(traced[0].records.contains(key)) << key[0] << ", op " << key[1];
    const std::vector<float>& got = traced[0].records.at(key);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); i++)
      ASSERT_NEAR(got[i], want[i], 2e-4) << "what " << key[0] << ", op " << key[1];
  }
  shape.traced = false;
  Rig untraced(shape);
  EXPECT_TRUE(same_bits(untraced.run(0, tokens), out[0]));
}

TEST(Queue, AnExecutorIsUsedAndNoThreadStarted) {
  ModelShape shape;
  const auto tokens = random_tokens(40, shape.vocab, 8);
  Rig own(shape);
  Rig lent(shape, {"cpu", nullptr, 0, serial_executor});
  EXPECT_TRUE(same_bits(lent.run(0, tokens, true), own.run(0, tokens, true)));
}

TEST(Queue, AChildProcessIsToldAndDoesNotHang) {
  ModelShape shape;
  Rig rig(shape);
  rig.run(0, {1, 2, 3});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    StepData data;
    rig.fill(data, {{0, {1}}});
    const kvb_step step = data.view();
    std::vector<float> out(shape.vocab);
    uint64_t ticket = 0;
    kv_error error{};
    const kv_status status = rig.device().api->queue_submit(rig.queue(), rig.program().get(), rig.cache(), &step,
                                                            out.data(), out.size(), &ticket, &error);
    const Owned<kvb_queue> fresh = rig.device().queue();  // its own queue works
    rig.device().api->queue_destroy(rig.queue());
    _exit(status == KV_DEVICE_LOST && error.message[0] != 0 && fresh ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  rig.run(0, {4});
}

TEST(Queue, ThreadsAreCappedAtTheProcessors) {
  ModelShape shape;
  const auto tokens = random_tokens(20, shape.vocab, 8);
  Rig many(shape, {"cpu", nullptr, 10000}), one(shape, {"cpu", nullptr, 1});
  EXPECT_TRUE(same_bits(many.run(0, tokens), one.run(0, tokens)));
}

TEST(Queue, FloatingPointStateIsKept) {
  ModelShape shape;
  Rig rig(shape);
  std::fesetround(FE_UPWARD);
  const std::vector<float> up = rig.run(0, {1, 2, 3});
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  Rig other(shape);
  EXPECT_TRUE(same_bits(other.run(0, {1, 2, 3}), up));
}

}  // namespace
}  // namespace kvasir::testing
