// SPDX-License-Identifier: MIT
//
// One context that two threads fight for, and objects that are released in any order. Runs under the thread sanitizer
// too; more of this kind is in tests/threads. (Case P13.)
#include <atomic>
#include <thread>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

kv_context_options cpu_options() {
  kv_context_options o = sized<kv_context_options>();
  o.device = "cpu";
  o.max_tokens = 256;
  o.threads = 2;
  return o;
}

TEST(Threads, OneContextFromTwoThreadsIsBusyNeverBroken) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const ContextPtr context = make_context(model.get(), cpu_options());
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

TEST(Threads, ReleasedInAnyOrder) {
  int destroyed = 0;
  kv_runtime_options options = sized<kv_runtime_options>();
  options.destroyed_user = &destroyed;
  options.destroyed = [](void* user) { ++*static_cast<int*>(user); };
  RuntimePtr runtime = make_runtime(&options);
  ModelPtr model = random_model(runtime.get(), small_config(), 7);
  ContextPtr context = make_context(model.get(), cpu_options());
  runtime.reset();
  model.reset();
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(prefill(context.get(), 0, {1, 2, 3}).size(), 64U);
  context.reset();
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace kvasir::test
