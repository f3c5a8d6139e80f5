// SPDX-License-Identifier: MIT
//
// Several contexts of one model on several threads, one context from two threads, an executor lent by the application.
// Runs under the thread sanitizer too. (Case P13.)
#include <atomic>
#include <cstring>
#include <thread>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

kv_context_options cpu_options(uint32_t threads) {
  kv_context_options o = sized<kv_context_options>();
  o.device = "cpu";
  o.max_tokens = 256;
  o.threads = threads;
  return o;
}

// A fixed walk of prefills, decodes and truncates; returns the last logits.
std::vector<float> walk(kv_context* context, uint32_t seed) {
  std::vector<float> last;
  Error e;
  for (uint32_t i = 0; i < 25; i++) {
    const std::vector<int32_t> tokens = random_tokens(1 + (seed + i) % 7, 64, seed * 100 + i);
    if (length_of(context, 0) + tokens.size() > 200) {
      EXPECT_EQ(kv_sequence_truncate(context, 0, 3, &e), KV_OK);
    }
    last = prefill(context, 0, tokens);
  }
  return last;
}

TEST(Threads, ContextsOfOneModelRunInParallel) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  std::vector<std::vector<float>> serial(8), parallel(8);
  for (uint32_t i = 0; i < 8; i++) serial[i] = walk(make_context(model.get(), cpu_options(1)).get(), i);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 8; i++) {
    threads.emplace_back([&, i] { parallel[i] = walk(make_context(model.get(), cpu_options(2)).get(), i); });
  }
  for (std::thread& t : threads) t.join();
  for (uint32_t i = 0; i < 8; i++) {
    ASSERT_EQ(serial[i].size(), 64U);
    ASSERT_EQ(parallel[i].size(), 64U);
    EXPECT_EQ(0, std::memcmp(serial[i].data(), parallel[i].data(), 64 * sizeof(float))) << "thread " << i;
  }
}

TEST(Threads, OneContextFromTwoThreadsIsBusyNeverBroken) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const ContextPtr context = make_context(model.get(), cpu_options(2));
  std::atomic<int> fine{0}, busy{0}, wrong{0};
  const auto hammer = [&](kv_sequence sequence) {
    for (int i = 0; i < 100; i++) {
      const int32_t token = i % 64;
      const kv_status status = kv_prefill(context.get(), sequence, &token, 1, nullptr, nullptr, nullptr);
      (status == KV_OK ? fine : status == KV_BUSY ? busy : wrong)++;
    }
  };
  kv_sequence other = 0;
  Error e;
  OK(kv_sequence_create(context.get(), &other, &e));
  std::thread second([&] { hammer(other); });
  hammer(KV_DEFAULT_SEQUENCE);
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(static_cast<uint64_t>(fine), length_of(context.get(), 0) + length_of(context.get(), other));
}

TEST(Threads, AnExecutorGivesTheSameBits) {
  // The harshest executor there is: one thread, indices backwards.
  kv_runtime_options options = sized<kv_runtime_options>();
  std::atomic<int> calls{0};
  options.parallel_user = &calls;
  options.parallel_for = [](void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
    static_cast<std::atomic<int>*>(user)->fetch_add(1);
    for (uint32_t i = count; i > 0; i--) body(arg, i - 1);
  };
  const RuntimePtr lent = make_runtime(&options), own = make_runtime();
  const ModelPtr a = random_model(lent.get(), small_config(), 7), b = random_model(own.get(), small_config(), 7);
  const std::vector<float> with = walk(make_context(a.get(), cpu_options(4)).get(), 3);
  const std::vector<float> without = walk(make_context(b.get(), cpu_options(4)).get(), 3);
  ASSERT_EQ(with.size(), 64U);
  EXPECT_EQ(0, std::memcmp(with.data(), without.data(), 64 * sizeof(float)));
  EXPECT_GT(calls, 0);
}

TEST(Threads, ReleasedInAnyOrder) {
  Error e;
  int destroyed = 0;
  kv_runtime_options options = sized<kv_runtime_options>();
  options.destroyed_user = &destroyed;
  options.destroyed = [](void* user) { ++*static_cast<int*>(user); };
  RuntimePtr runtime = make_runtime(&options);
  ModelPtr model = random_model(runtime.get(), small_config(), 7);
  ContextPtr context = make_context(model.get(), cpu_options(2));
  runtime.reset();
  model.reset();
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(prefill(context.get(), 0, {1, 2, 3}).size(), 64U);
  context.reset();
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace kvasir::test
