// SPDX-License-Identifier: MIT
//
// Objects that end: releases in every order, a thousand contexts, a device that is lost, a byte budget that is used up.
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <fstream>

#include "faults/faulty_backend.h"
#include "faults/injector.h"
#include "faults/trouble.h"
#include "faults/world.h"

namespace kvasir::test {
namespace {

uint64_t resident_pages() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

class Lifetime : public ::testing::TestWithParam<std::string> {};

// Case P24.
TEST_P(Lifetime, AThousandContextsLeaveNothing) {
  World world(Stage::kModel, GetParam(), 1);
  const auto once = [&] {
    const ContextPtr context = make_context(world.model.get(), world.options());
    prefill(context.get(), 0, {1, 2, 3, 4, 5, 6, 7, 8});
  };
  for (int i = 0; i < 50; i++) once();
  const int64_t blocks = live_blocks();
  const uint64_t pages = resident_pages();
  const int contexts = can_inject() ? 1000 : 100;  // a sanitizer's own leak check needs no more
  for (int i = 0; i < contexts; i++) once();
  EXPECT_EQ(live_blocks(), blocks);
  const uint64_t allowed = can_inject() ? pages + 64 : UINT64_MAX;  // sanitizers keep what is freed
  EXPECT_LE(resident_pages(), allowed);
}

// The runtime's allocator gets everything back, in any order of releases.
TEST_P(Lifetime, ReleasesInEveryOrder) {
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    {
      kv_runtime_options options = sized<kv_runtime_options>();
      const kv_allocator allocator = hooked_allocator.table();
      options.allocator = &allocator;
      int ended = 0;
      options.destroyed = [](void* user) { ++*static_cast<int*>(user); };
      options.destroyed_user = &ended;
      RuntimePtr runtime = make_runtime(&options);
      ModelPtr model = random_model(runtime.get(), small_config(), 1);
      kv_context_options context_options = sized<kv_context_options>();
      context_options.device = GetParam().c_str();
      context_options.max_tokens = 32;
      ContextPtr first = make_context(model.get(), context_options);
      ContextPtr second = make_context(model.get(), context_options);
      kv_backend_report* report = nullptr;
      EXPECT_EQ(kv_backend_report_create(runtime.get(), &report, nullptr), KV_OK);
      const std::vector<float> want = prefill(first.get(), 0, {1, 2, 3});
      for (const int which : order) {
        if (which == 0) runtime.reset();
        if (which == 1) model.reset();
        if (which == 2) first.reset();
        if (which == 3) second.reset();
        if (which == 4) kv_backend_report_release(report);
        // What is left still works.
        if (second != nullptr) {
          EXPECT_EQ(kv_sequence_truncate(second.get(), 0, 0, nullptr), KV_OK);
          EXPECT_TRUE(same_bits(prefill(second.get(), 0, {1, 2, 3}), want));
        }
      }
      EXPECT_EQ(ended, 1);
    }
    ASSERT_EQ(hooked_allocator.live, 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Every size of budget: create says out of memory, or the context holds what it says and not a token more.
TEST_P(Lifetime, EveryBudget) {
  World world(Stage::kModel, GetParam(), 1);
  uint64_t created = 0, refused = 0;
  for (uint64_t budget = 1; budget < 600000; budget += budget / 12 + 1) {
    kv_context_options options = world.options();
    options.memory_budget = budget;
    options.max_tokens = 0;
    kv_context* made = nullptr;
    Error e;
    const kv_status status = kv_context_create(world.model.get(), &options, &made, &e);
    const ContextPtr context(made);
    if (status != KV_OK) {
      EXPECT_EQ(status, KV_OUT_OF_MEMORY) << e.message;
      EXPECT_NE(std::string(e.message).find("budget"), std::string::npos) << e.message;
      refused++;
      continue;
    }
    created++;
    kv_context_info info = sized<kv_context_info>();
    OK(kv_context_get_info(made, &info, &e));
    std::vector<int32_t> tokens(info.free_tokens, 1);
    OK(kv_prefill(made, 0, tokens.data(), tokens.size(), nullptr, nullptr, &e));
    world.context.reset();
    const ContextState before = observe(made, 2, 2, World::kRowWidth);
    FAILS(KV_CONTEXT_FULL, "1", kv_prefill(made, 0, tokens.data(), 1, nullptr, nullptr, &e));
    EXPECT_EQ(difference(before, observe(made, 2, 2, World::kRowWidth)), "");
    OK(kv_context_get_info(made, &info, &e));
    EXPECT_LE(info.cache_bytes + info.scratch_bytes, budget);
  }
  EXPECT_GT(created, 5U);
  EXPECT_GT(refused, 5U);
}

INSTANTIATE_TEST_SUITE_P(Backends, Lifetime, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

class Lost : public ::testing::TestWithParam<std::string> {};

// Only releases are allowed after the device is gone; until then nothing was changed by the call that noticed.
TEST_P(Lost, DeviceSaysSoFromThenOn) {
  for (uint64_t n = 1; n <= 8; n++) {
    World world(Stage::kContext, GetParam(), 1);
    const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    Error e;
    backend_fault = {KV_DEVICE_LOST, n, false, false};
    const kv_status status = kv_prefill(world.context.get(), 1, tokens, 9, nullptr, nullptr, &e);
    backend_fault.calls_left = 0;
    if (!backend_fault.fired) continue;
    EXPECT_EQ(status, KV_DEVICE_LOST) << e.message;
    uint64_t length = 0;
    OK(kv_sequence_length(world.context.get(), 1, &length, &e));
    EXPECT_EQ(length, 6U);
    kv_sequence made = 0;
    FAILS(KV_DEVICE_LOST, "lost", kv_prefill(world.context.get(), 0, tokens, 1, nullptr, nullptr, &e));
    FAILS(KV_DEVICE_LOST, "lost", kv_sequence_create(world.context.get(), &made, &e));
    FAILS(KV_DEVICE_LOST, "lost", kv_sequence_fork(world.context.get(), 0, 1, &made, &e));
    FAILS(KV_DEVICE_LOST, "lost", kv_sequence_truncate(world.context.get(), 0, 1, &e));
    OK(kv_sequence_release(world.context.get(), 1, &e));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Lost, ::testing::Values("faulty_ref", "faulty_cpu"),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
