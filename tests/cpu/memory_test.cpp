// SPDX-License-Identifier: MIT
//
// Cases P24 and P25 below the runtime: counts return to their start after a thousand rounds, sizes told beforehand are
// exact, and every allocation may fail.
#include <gtest/gtest.h>

#include "random_model.h"

namespace kvasir::testing {
namespace {

// Everything a session creates, with statuses instead of exceptions; destroys what it has created.
kv_status session(const TestDevice& device, const ProgramBuilder& builder, const CacheSpec& spec,
                  const ModelShape& shape) {
  const kvb_api& api = *device.api;
  kv_error error{};
  std::vector<kvb_weight*> weights;
  kvb_program* program = nullptr;
  kvb_queue* queue = nullptr;
  kvb_cache* cache = nullptr;
  const kv_status status = [&] {
    for (const Tensor& tensor : builder.weights) {
      const kvb_weight_desc desc{sizeof desc, tensor.type,         tensor.depth,        tensor.rows, tensor.width,
                                 0,           tensor.bytes.data(), tensor.bytes.size(), nullptr,     nullptr};
      kvb_weight* weight = nullptr;
      if (const kv_status s = api.weight_create(device.get(), &desc, &weight, &error); s != KV_OK) return s;
      weights.push_back(weight);
    }
    const kvb_program_desc desc = builder.desc();
    const kvb_cache_desc cache_desc = spec.desc();
    const auto count = static_cast<uint32_t>(weights.size());
    if (const kv_status s =
            api.program_compile(device.get(), &desc, &cache_desc, weights.data(), count, &program, &error);
        s != KV_OK)
      return s;
    if (const kv_status s = api.queue_create(device.get(), nullptr, &queue, &error); s != KV_OK) return s;
    if (const kv_status s = api.cache_create(device.get(), &cache_desc, &cache, &error); s != KV_OK) return s;
    const uint32_t pages = 3;
    if (const kv_status s = api.cache_resize(queue, cache, &pages, &error); s != KV_OK) return s;
    StepData data;
    TestSequence sequence{0, {{2, 0, 1}}};
    data.append(sequence, random_tokens(8, shape.vocab, 1));
    const kvb_step step = data.view();
    std::vector<float> out(shape.vocab);
    uint64_t ticket = 0;
    if (const kv_status s = api.queue_submit(queue, program, cache, &step, out.data(), out.size(), &ticket, &error);
        s != KV_OK)
      return s;
    return api.queue_wait(queue, ticket, KVB_WAIT_FOREVER, &error);
  }();
  api.cache_destroy(cache);
  api.program_destroy(program);
  api.queue_destroy(queue);
  for (kvb_weight* weight : weights) api.weight_destroy(weight);
  return status;
}

TEST(Memory, AThousandRounds) {
  ModelShape shape;
  shape.page_tokens = 16;
  const CacheSpec spec = cache_of(shape);
  const ProgramBuilder builder = RandomModel(shape).build();
  TestHost host;
  const TestDevice device(query_of("cpu"), host);
  for (int round = 0; round < 1000; round++) {
    ASSERT_EQ(session(device, builder, spec, shape), KV_OK);
    ASSERT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
    ASSERT_EQ(host.live_blocks, 0u);
  }
}

TEST(Memory, EveryAllocationMayFail) {
  ModelShape shape;
  shape.page_tokens = 16;
  const CacheSpec spec = cache_of(shape);
  const ProgramBuilder builder = RandomModel(shape).build();
  TestHost host;
  const TestDevice device(query_of("cpu"), host);
  int64_t failures = 0;
  for (int64_t n = 0;; n++) {
    host.calls_until_failure = n;
    const kv_status status = session(device, builder, spec, shape);
    host.calls_until_failure = -1;
    ASSERT_EQ(host.live_blocks, 0u) << "after failing at allocation " << n;
    ASSERT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
    if (status == KV_OK) break;
    ASSERT_EQ(status, KV_OUT_OF_MEMORY);
    failures++;
  }
  EXPECT_GT(failures, 10);
}

TEST(Memory, ProgramMemoryIsExact) {
  for (const bool traced : {false, true}) {
    for (const uint32_t tokens : {1u, 17u, 512u}) {
      ModelShape shape;
      shape.traced = traced;
      shape.weight_type = KV_TYPE_Q8_0;
      shape.compute_mode = KV_COMPUTE_FAST;
      shape.limits = {tokens, tokens, 4, 5000};
      Rig rig(shape);
      const ProgramBuilder builder = RandomModel(shape).build();
      const kvb_program_desc desc = builder.desc();
      const kvb_cache_desc cache = rig.spec().desc();
      kvb_memory memory{sizeof memory, 0, 0, 0};
      kv_error error{};
      ASSERT_EQ(rig.device().api->program_memory(rig.device().get(), &desc, &cache, &memory, &error), KV_OK)
          << error.message;
      uint64_t weights = 0;
      for (const Tensor& tensor : builder.weights) {
        const kvb_weight_desc weight{sizeof weight, tensor.type, tensor.depth,        tensor.rows,
                                     tensor.width,  0,           tensor.bytes.data(), tensor.bytes.size(),
                                     nullptr,       nullptr};
        kvb_memory one{sizeof one, 0, 0, 0};
        ASSERT_EQ(rig.device().api->weight_memory(rig.device().get(), &weight, &one, &error), KV_OK);
        weights += one.device_bytes;
      }
      kvb_memory pages{sizeof pages, 0, 0, 0};
      const uint32_t count = rig.page_count();
      ASSERT_EQ(rig.device().api->cache_memory(rig.device().get(), &cache, &count, &pages, &error), KV_OK);
      EXPECT_EQ(rig.device().query(KVB_QUERY_MEMORY_USED), memory.device_bytes + weights + pages.device_bytes);
      EXPECT_EQ(rig.host().live_bytes, rig.device().query(KVB_QUERY_MEMORY_USED));
    }
  }
}

TEST(Memory, AbsurdSizesAreAnAnswer) {
  ModelShape shape;
  TestHost host;
  const TestDevice device(query_of("cpu"), host);
  const kvb_api& api = *device.api;
  kv_error error{};
  const Owned<kvb_queue> queue = device.queue();
  const CacheSpec spec = cache_of(shape);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {1});
  host.calls_until_failure = 100;
  const uint32_t pages = UINT32_MAX;
  EXPECT_EQ(api.cache_resize(queue.get(), cache.get(), &pages, &error), KV_OUT_OF_MEMORY);
  EXPECT_NE(error.message[0], 0);
  host.calls_until_failure = -1;
  const uint32_t two = 2;
  EXPECT_EQ(api.cache_resize(queue.get(), cache.get(), &two, &error), KV_OK);
}

}  // namespace
}  // namespace kvasir::testing
