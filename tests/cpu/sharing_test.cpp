// SPDX-License-Identifier: MIT
//
// Case P13 below the runtime: one device and its weights, several queues, programs and caches, each on its own thread.
#include <gtest/gtest.h>

#include <thread>

#include "random_model.h"

namespace kvasir::testing {
namespace {

TEST(Sharing, QueuesOnSeveralThreads) {
  ModelShape shape;
  shape.page_tokens = 16;
  shape.v_type = KV_TYPE_F16;
  TestHost host;
  const TestDevice device(query_of("cpu"), host);
  const CacheSpec spec = cache_of(shape);
  const ProgramBuilder builder = RandomModel(shape).build();
  const auto session = [&](uint32_t seed) {
    const Owned<kvb_queue> queue = device.queue(2);
    const TestProgram program(device, builder, spec);
    const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {8});
    TestSequence sequence{0, {{3, 1, 0, 2}}};
    std::vector<float> all;
    for (const uint32_t count : {17u, 1u, 1u, 9u, 1u}) {
      StepData step;
      step.append(sequence, random_tokens(count, shape.vocab, seed + count));
      const std::vector<float> out = run_step(device, queue.get(), program, cache.get(), step);
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  };
  constexpr uint32_t kThreads = 4;
  std::vector<std::vector<float>> want(kThreads), got(kThreads);
  for (uint32_t i = 0; i < kThreads; i++) want[i] = session(i * 100);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; i++) threads.emplace_back([&, i] { got[i] = session(i * 100); });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < kThreads; i++) EXPECT_TRUE(same_bits(got[i], want[i])) << "thread " << i;
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
}

TEST(Sharing, InstancesDoNotKnowEachOther) {
  ModelShape shape;
  const auto run = [&] {
    for (int i = 0; i < 3; i++) {
      Rig rig(shape);
      rig.run(0, random_tokens(20, shape.vocab, 5));
    }
  };
  std::thread other(run);
  run();
  other.join();
}

}  // namespace
}  // namespace kvasir::testing
