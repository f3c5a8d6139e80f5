// SPDX-License-Identifier: MIT
//
// The injector reaches everything an application is made of: libkvasir as a shared library, the plugins, libstdc++.
// What it does not see could not be made to fail, and the sweeps would prove nothing.
#include <gtest/gtest.h>

#include <string>

#include "faults/injector.h"
#include "support/backend_harness.h"
#include "support/kv.h"

namespace kvasir::test {
namespace {

template <class F>
uint64_t allocations_of(F&& function) {
  const Faults faults(kMemory, 0, false);
  failing([&] {
    function();
    return 0;
  });
  return faults.seen();
}

TEST(Injector, SeesAllocationsOfLibraries) {
  if (!can_inject()) GTEST_SKIP() << "sanitizers own malloc: nothing is counted";
  EXPECT_EQ(allocations_of([] {}), 0U);
  std::string text;
  EXPECT_EQ(allocations_of([&] { text.assign(1000, 'x'); }), 1U) << "libstdc++";

  RuntimePtr runtime;
  EXPECT_GT(allocations_of([&] { runtime = make_runtime(); }), 5U) << "libkvasir";

  for (const std::string& name : backends()) {
    const kvb_query_fn entry = testing::find_plugin(name);
    ASSERT_NE(entry, nullptr);
    testing::TestHost host;
    const kvb_api* api = entry(&host.table, nullptr);
    ASSERT_NE(api, nullptr);
    kvb_instance* instance = nullptr;
    EXPECT_GT(allocations_of([&] { api->instance_create(&host.table, &instance, nullptr); }), 0U) << name;
    api->instance_destroy(instance);
  }
}

TEST(Injector, CountsBlocks) {
  if (!can_inject()) GTEST_SKIP() << "sanitizers own malloc: nothing is counted";
  const int64_t before = live_blocks();
  RuntimePtr runtime = make_runtime();
  EXPECT_GT(live_blocks(), before);
  runtime.reset();
  EXPECT_EQ(live_blocks(), before);
}

TEST(Injector, FailsTheOneAndThoseAfterIt) {
  if (!can_inject()) GTEST_SKIP() << "sanitizers own malloc: nothing can be made to fail";
  for (const bool persistent : {false, true}) {
    void* blocks[3] = {};
    {
      const Faults faults(kMemory, 2, persistent);
      failing([&] {
        for (void*& block : blocks) block = std::malloc(8);
        return 0;
      });
      EXPECT_TRUE(faults.fired());
    }
    EXPECT_NE(blocks[0], nullptr);
    EXPECT_EQ(blocks[1], nullptr);
    EXPECT_EQ(blocks[2] == nullptr, persistent);
    for (void* block : blocks) std::free(block);
  }
}

}  // namespace
}  // namespace kvasir::test
