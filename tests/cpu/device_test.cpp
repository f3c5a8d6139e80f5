// SPDX-License-Identifier: MIT
//
// The device: what it says of itself, forced variants, weights, refused programs.
#include <gtest/gtest.h>

#include "random_model.h"

namespace kvasir::testing {
namespace {

class DeviceTest : public ::testing::Test {
 protected:
  const kvb_api& api() const { return *device.api; }
  kv_status check(const ProgramBuilder& builder, const CacheSpec& spec, uint32_t* first) {
    const kvb_program_desc desc = builder.desc();
    const kvb_cache_desc cache = spec.desc();
    return api().program_check(device.get(), &desc, &cache, first, &error);
  }

  TestHost host;
  TestDevice device{query_of("cpu"), host};
  kv_error error{};
};

TEST_F(DeviceTest, SaysWhatItIs) {
  uint32_t count = 0;
  ASSERT_EQ(api().device_count(device.instance(), &count, nullptr, 0, &error), KV_OK);
  EXPECT_EQ(count, 1u);
  kvb_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(api().device_info(device.instance(), 0, &info, &error), KV_OK) << error.message;
  EXPECT_EQ(info.kind, uint32_t{KVB_DEVICE_CPU});
  EXPECT_NE(std::string(info.name), "");
  EXPECT_NE(std::string(info.driver).find("scalar"), std::string::npos) << info.driver;
  EXPECT_GT(info.memory_total, 0u);
  EXPECT_LE(info.memory_available, info.memory_total);
  EXPECT_EQ(api().device_info(device.instance(), 1, &info, &error), KV_INVALID_ARGUMENT);
}

TEST_F(DeviceTest, Queries) {
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS), 256u);
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS_MIN), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS_MAX), 4096u);
  EXPECT_EQ(device.query(KVB_QUERY_DETERMINISTIC), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
  EXPECT_GE(device.query(KVB_QUERY_DEFAULT_THREADS), 1u);
  uint64_t out = 77;
  EXPECT_EQ(api().device_query(device.get(), 999, &out, &error), KV_UNSUPPORTED);
  EXPECT_EQ(out, 77u);
}

TEST_F(DeviceTest, VariantsCanBeForced) {
  const TestDevice scalar(query_of("cpu"), host, "scalar");
  EXPECT_STREQ(api().device_variant(scalar.get()), "scalar");
  kvb_device* out = nullptr;
  kvb_device_options options{sizeof options, 0, "sse9"};
  EXPECT_EQ(api().device_open(device.instance(), 0, &options, &out, &error), KV_UNSUPPORTED);
  EXPECT_EQ(out, nullptr);
  EXPECT_NE(std::string(error.message).find("sse9"), std::string::npos) << error.message;
  EXPECT_NE(std::string(error.message).find("scalar"), std::string::npos) << error.message;
}

TEST_F(DeviceTest, WeightMemoryIsExact) {
  RandomWeights random(3);
  for (const uint32_t type :
       {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0, KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K}) {
    for (const uint32_t rows : {1u, 3u, 16u, 33u}) {
      const Tensor tensor = random.matrix(type, rows, 256);
      const kvb_weight_desc desc{sizeof desc,         type,    1,      rows, 256, 0, tensor.bytes.data(),
                                 tensor.bytes.size(), nullptr, nullptr};
      kvb_memory memory{sizeof memory, 0, 0, 0};
      ASSERT_EQ(api().weight_memory(device.get(), &desc, &memory, &error), KV_OK) << error.message;
      kvb_weight* weight = nullptr;
      ASSERT_EQ(api().weight_create(device.get(), &desc, &weight, &error), KV_OK) << error.message;
      EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), memory.device_bytes);
      EXPECT_EQ(host.live_bytes, memory.device_bytes);
      api().weight_destroy(weight);
      EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
    }
  }
}

TEST_F(DeviceTest, BadWeightsAreRefused) {
  const float data[64] = {};
  const kvb_weight_desc good{sizeof good, KV_TYPE_F32, 1, 2, 32, 0, data, sizeof data, nullptr, nullptr};
  const auto status = [&](auto change) {
    kvb_weight_desc desc = good;
    change(desc);
    kvb_weight* weight = nullptr;
    const kv_status code = api().weight_create(device.get(), &desc, &weight, &error);
    api().weight_destroy(weight);
    return code;
  };
  EXPECT_EQ(status([](auto&) {}), KV_OK);
  EXPECT_EQ(status([](auto& d) { d.type = KV_TYPE_Q2_K; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& d) { d.type = 4000; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& d) { d.rows = 0; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& d) { d.bytes -= 4; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& d) { d.data = nullptr; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& d) { d.type = KV_TYPE_Q8_0, d.width = 33; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& d) { d.flags = 8; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& d) { d.struct_size = 3; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().weight_create(device.get(), nullptr, nullptr, &error), KV_INVALID_ARGUMENT);
}

TEST_F(DeviceTest, ImportedMemoryIsGivenBackAlways) {
  const float data[32] = {};
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  kvb_weight_desc desc{sizeof desc, KV_TYPE_F32, 1, 1, 32, KVB_WEIGHT_IMPORT, data, sizeof data, release, &released};
  kvb_weight* weight = nullptr;
  ASSERT_EQ(api().weight_create(device.get(), &desc, &weight, &error), KV_OK);
  api().weight_destroy(weight);
  EXPECT_EQ(released, 1);
  desc.bytes = 5;
  EXPECT_NE(api().weight_create(device.get(), &desc, &weight, &error), KV_OK);
  EXPECT_EQ(released, 2);
}

TEST_F(DeviceTest, CheckNamesWhatCannotRun) {
  ModelShape shape;
  const CacheSpec spec = cache_of(shape);
  ProgramBuilder builder = RandomModel(shape).build();
  uint32_t first = 0;
  EXPECT_EQ(check(builder, spec, &first), KV_OK) << error.message;
  EXPECT_EQ(first, KVB_NONE);
  for (uint32_t i = 0; i < builder.ops.size(); i++) {
    if (builder.ops[i].code != KVB_OP_ATTENTION) continue;
    ProgramBuilder capped = builder;
    capped.ops[i].param[3] = bits(30.0f);
    EXPECT_EQ(check(capped, spec, &first), KV_UNSUPPORTED);
    EXPECT_EQ(first, i);
    EXPECT_NE(std::string(error.message).find("soft-cap"), std::string::npos) << error.message;
  }
  ProgramBuilder unknown = builder;
  unknown.ops[2].code = 999;
  EXPECT_EQ(check(unknown, spec, &first), KV_UNSUPPORTED);
  EXPECT_EQ(first, 2u);
}

TEST_F(DeviceTest, CachesThatCannotBeAreRefused) {
  const kvb_cache_group good{KV_TYPE_F16, KV_TYPE_F16, 2, 64, 64, 0, 256, 0};
  const auto status = [&](auto change) {
    kvb_cache_group group = good;
    change(group);
    const CacheSpec spec = one_group(2, group);
    const kvb_cache_desc desc = spec.desc();
    kvb_cache* cache = nullptr;
    const kv_status code = api().cache_create(device.get(), &desc, &cache, &error);
    api().cache_destroy(cache);
    return code;
  };
  EXPECT_EQ(status([](auto&) {}), KV_OK);
  EXPECT_EQ(status([](auto& g) { g.k_type = KV_TYPE_Q4_0; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& g) { g.k_dim = 1025; }), KV_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("1025"), std::string::npos) << error.message;
  EXPECT_EQ(status([](auto& g) { g.k_dim = g.v_dim = 1024; }), KV_OK);
  EXPECT_EQ(status([](auto& g) { g.v_dim = 0; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& g) { g.page_tokens = 0; }), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& g) { g.page_tokens = 4097; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& g) { g.flags = KVB_CACHE_LATENT; }), KV_UNSUPPORTED);
  EXPECT_EQ(status([](auto& g) { g.kv_heads = 1u << 30; }), KV_INVALID_ARGUMENT);
}

// A single row as a matrix: the weight is kept as a vector, the program packs it.
TEST_F(DeviceTest, LinearWithOneOutput) {
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_Q8_0}) {
    RandomWeights random(5);
    ProgramBuilder builder;
    const uint32_t x = builder.tokens(64);
    builder.op(KVB_OP_EMBED, {builder.weight(random.matrix(type, 1, 64))}, {x});
    const uint32_t y = builder.tokens(1);
    builder.op(KVB_OP_LINEAR, {x, builder.weight(random.matrix(type, 1, 64))}, {y});
    builder.op(KVB_OP_SELECT_ROWS, {y}, {builder.output(1)});
    std::vector<float> results;
    for (const char* name : {"cpu", "ref"}) {
      const TestDevice other(query_of(name), host);
      const Owned<kvb_queue> queue = other.queue();
      const CacheSpec spec{};
      const TestProgram program(other, builder, spec);
      const Owned<kvb_cache> cache = make_cache(other, queue.get(), spec, {});
      TestSequence sequence;
      StepData step;
      step.append(sequence, {0, 0, 0}, true);
      const std::vector<float> out = run_step(other, queue.get(), program, cache.get(), step);
      ASSERT_EQ(out.size(), 3u);
      results.push_back(out[2]);
    }
    EXPECT_NEAR(results[0], results[1], 1e-5) << sdk::type_name(type);
  }
}

}  // namespace
}  // namespace kvasir::testing
