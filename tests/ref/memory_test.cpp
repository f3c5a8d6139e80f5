// SPDX-License-Identifier: MIT
//
// Memory: predictions that are exact, and what happens when there is none: the host's allocator, or operator new, fails
// at every single call in turn, and each time a sentence comes back, nothing leaks and everything still works.
#include <atomic>
#include <cstdlib>

#include "ref_fixture.h"
#include "small_model.h"

namespace {
std::atomic<int64_t> news_until_failure{-1};  // 0: the next one fails, once; negative: none does
}

// Not inlined, or the compiler takes new and free for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (news_until_failure >= 0 && news_until_failure-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace kvasir::testing {
namespace {

class Memory : public RefTest {
 protected:
  Memory() : builder(SmallModel::program({})) {
    prompt.append(sequence, {1, 2, 3, 4, 5}, true);
    view = prompt.view();
  }

  // Makes everything from nothing, runs a step, and destroys it all. The first status that is not KV_OK.
  kv_status whole_life() {
    std::vector<kvb_weight*>& weights = handles;
    weights.clear();
    kvb_queue* queue_handle = nullptr;
    kvb_cache* cache = nullptr;
    kvb_program* program = nullptr;
    kv_status status = api().queue_create(device.get(), nullptr, &queue_handle, &error);
    for (const Tensor& tensor : builder.weights) {
      if (status != KV_OK) break;
      const kvb_weight_desc desc{sizeof desc, tensor.type,         tensor.depth,        tensor.rows, tensor.width,
                                 0,           tensor.bytes.data(), tensor.bytes.size(), nullptr,     nullptr};
      kvb_weight* weight = nullptr;
      status = api().weight_create(device.get(), &desc, &weight, &error);
      if (status == KV_OK) weights.push_back(weight);
    }
    const uint32_t pages[2] = {3, 2};
    if (status == KV_OK) status = api().cache_create(device.get(), &cache_desc, &cache, &error);
    if (status == KV_OK) status = api().cache_resize(queue_handle, cache, pages, &error);
    if (status == KV_OK) {
      status = api().program_compile(device.get(), &program_desc, &cache_desc, weights.data(),
                                     static_cast<uint32_t>(weights.size()), &program, &error);
    }
    uint64_t ticket = 0;
    if (status == KV_OK) {
      status = api().queue_submit(queue_handle, program, cache, &view, out.data(), out.size(), &ticket, &error);
    }
    if (status == KV_OK) status = api().queue_wait(queue_handle, ticket, KVB_WAIT_FOREVER, &error);
    const kvb_cache_move move{0, 0, 1, 0, 2, 3};
    if (status == KV_OK) status = api().cache_move_rows(queue_handle, cache, 0, &move, 1, nullptr, &error);
    api().program_destroy(program);
    api().cache_destroy(cache);
    for (kvb_weight* weight : weights) api().weight_destroy(weight);
    api().queue_destroy(queue_handle);
    return status;
  }

  ProgramBuilder builder;
  CacheSpec spec = SmallModel::cache(KV_TYPE_F16, 4);
  kvb_program_desc program_desc = builder.desc();
  kvb_cache_desc cache_desc = spec.desc();
  TestSequence sequence{0, {{2, 0}, {1, 0}}};
  StepData prompt;
  kvb_step view{};
  std::vector<float> out = std::vector<float>(5 * SmallModel::kVocab);
  std::vector<kvb_weight*> handles = std::vector<kvb_weight*>(64);
  kv_error error{};
};

// KVB-13
TEST_F(Memory, WeightsAreCountedExactly) {
  const Tensor tensor = f32_tensor(3, 32, std::vector<float>(96));
  const kvb_weight_desc desc{sizeof desc, tensor.type, 1, 3, 32, 0, tensor.bytes.data(), 384, nullptr, nullptr};
  kvb_memory memory{sizeof memory, 0, 7, 7};
  ASSERT_EQ(api().weight_memory(device.get(), &desc, &memory, &error), KV_OK);
  EXPECT_EQ(memory.device_bytes, 384u);
  EXPECT_EQ(memory.host_bytes, 0u);
  kvb_weight* weight = nullptr;
  ASSERT_EQ(api().weight_create(device.get(), &desc, &weight, &error), KV_OK);
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 384u);
  EXPECT_EQ(host.live_bytes, 384u);
  api().weight_destroy(weight);
  EXPECT_EQ(host.live_bytes, 0u);
}

TEST_F(Memory, WeightsAreRefusedWithTheReason) {
  const std::vector<unsigned char> bytes(1024);
  const auto refused = [&](kvb_weight_desc desc, kv_status status, const char* sentence) {
    kvb_weight* weight = nullptr;
    EXPECT_EQ(api().weight_create(device.get(), &desc, &weight, &error), status) << sentence;
    EXPECT_STREQ(error.message, sentence);
    EXPECT_EQ(weight, nullptr);
  };
  const kvb_weight_desc good{sizeof good, KV_TYPE_F32, 1, 2, 4, 0, bytes.data(), 32, nullptr, nullptr};
  const auto with = [&](auto change) {
    kvb_weight_desc desc = good;
    change(desc);
    return desc;
  };
  refused(with([](auto& d) { d.type = 16; }), KV_UNSUPPORTED, "weights of type unknown (16) are not taken");
  refused(with([](auto& d) { d.type = 0; }), KV_UNSUPPORTED, "weights of type unknown (0) are not taken");
  refused(with([](auto& d) { d.rows = 0; }), KV_INVALID_ARGUMENT, "the weight is [1][0][4]");
  refused(with([](auto& d) { d.bytes = 31; }), KV_INVALID_ARGUMENT, "the weight has 31 bytes, its shape needs 32");
  refused(with([](auto& d) { d.type = KV_TYPE_Q8_0; }), KV_INVALID_ARGUMENT,
          "the weight is [1][2][4] in q8_0, whose blocks are 32 wide");
  refused(with([](auto& d) { d.depth = d.rows = UINT32_MAX; }), KV_INVALID_ARGUMENT,
          "the weight is [4294967295][4294967295][4] in f32, whose blocks are 1 wide");
  refused(with([](auto& d) { d.flags = 2; }), KV_UNSUPPORTED, "the weight has unknown flags 0x2");
  refused(with([](auto& d) { d.data = nullptr; }), KV_INVALID_ARGUMENT, "the weight's data is NULL");
}

// KVB-26
TEST_F(Memory, ImportedWeightsAreReleasedOnce) {
  const std::vector<float> data = {1, 2, 3, 4};
  int releases = 0;
  kvb_weight_desc desc{sizeof desc, KV_TYPE_F32, 1,
                       2,           2,           KVB_WEIGHT_IMPORT,
                       data.data(), 16,          [](void* user) { ++*static_cast<int*>(user); },
                       &releases};
  kvb_memory memory{sizeof memory, 0, 7, 7};
  ASSERT_EQ(api().weight_memory(device.get(), &desc, &memory, &error), KV_OK);
  EXPECT_EQ(memory.device_bytes, 0u);
  kvb_weight* weight = nullptr;
  ASSERT_EQ(api().weight_create(device.get(), &desc, &weight, &error), KV_OK);
  EXPECT_EQ(host.live_bytes, 0u);
  EXPECT_EQ(releases, 0);
  api().weight_destroy(weight);
  EXPECT_EQ(releases, 1);
  desc.bytes = 15;  // refused: released all the same
  EXPECT_EQ(api().weight_create(device.get(), &desc, &weight, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(releases, 2);
}

// KVB-13
TEST_F(Memory, ProgramsAreCountedExactly) {
  for (const uint32_t flags : {0u, uint32_t{KVB_PROGRAM_TRACE}}) {
    ProgramBuilder traced = builder;
    traced.flags = flags;
    const kvb_program_desc desc = traced.desc();
    kvb_memory memory{sizeof memory, 0, 0, 0};
    ASSERT_EQ(api().program_memory(device.get(), &desc, &cache_desc, &memory, &error), KV_OK) << error.message;
    const TestProgram program(device, traced, spec);
    uint64_t weight_bytes = 0;
    for (const Tensor& tensor : traced.weights) weight_bytes += tensor.bytes.size();
    EXPECT_EQ(host.live_bytes, weight_bytes + memory.device_bytes);
    EXPECT_GE(memory.device_bytes, traced.scratch_bytes);
    EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), host.live_bytes);
  }
  EXPECT_EQ(host.live_bytes, 0u);
}

// KVB-14
TEST_F(Memory, FailingHostAllocator) {
  uint32_t failures = 0;
  for (int64_t calls = 0;; ++calls) {
    ASSERT_LT(calls, 1000);
    host.calls_until_failure = calls;
    error = {};
    const kv_status status = whole_life();
    host.calls_until_failure = -1;
    EXPECT_EQ(host.live_blocks, 0u);
    if (status == KV_OK) break;
    ++failures;
    ASSERT_EQ(status, KV_OUT_OF_MEMORY) << error.message;
    ASSERT_NE(std::string(error.message).find("the host has no"), std::string::npos) << error.message;
  }
  EXPECT_GT(failures, builder.weights.size() + 5);  // weights, pages, the program's blocks
  EXPECT_EQ(whole_life(), KV_OK);
}

// KVB-5
TEST_F(Memory, FailingOperatorNew) {
  uint32_t failures = 0;
  for (int64_t calls = 0;; ++calls) {
    ASSERT_LT(calls, 1000);
    error = {};
    news_until_failure = calls;
    const kv_status status = whole_life();
    news_until_failure = -1;
    EXPECT_EQ(host.live_blocks, 0u) << calls;
    if (status == KV_OK) break;
    ++failures;
    ASSERT_EQ(status, KV_OUT_OF_MEMORY) << error.message;
  }
  EXPECT_GT(failures, builder.weights.size());
  EXPECT_EQ(whole_life(), KV_OK);
}

TEST_F(Memory, NothingGrowsOverManyLives) {
  ASSERT_EQ(whole_life(), KV_OK);
  for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(whole_life(), KV_OK);
  EXPECT_EQ(host.live_bytes, 0u);
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
}

}  // namespace
}  // namespace kvasir::testing
