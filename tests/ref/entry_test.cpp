// SPDX-License-Identifier: MIT
//
// Negotiation, instance and device: what the entry function accepts, and what every call refuses in words.
#include <cfenv>
#include <cstddef>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

// KVB-2
TEST(Entry, GivesACompleteTable) {
  TestHost host;
  kv_error error{};
  const kvb_api* api = ref_query()(&host.table, &error);
  ASSERT_NE(api, nullptr) << error.message;
  EXPECT_EQ(api->struct_size, sizeof(kvb_api));
  EXPECT_EQ(api->abi_version, KVB_ABI_VERSION);
  EXPECT_STREQ(api->name, "ref");
  EXPECT_STREQ(api->version, "0.1.0");
  for (size_t offset = offsetof(kvb_api, instance_create); offset < sizeof(kvb_api); offset += sizeof(void*)) {
    void* entry = nullptr;
    std::memcpy(&entry, reinterpret_cast<const char*>(api) + offset, sizeof entry);
    EXPECT_NE(entry, nullptr) << "entry at offset " << offset;
  }
  EXPECT_EQ(api->extension("kvasir.counters/1"), nullptr);
  EXPECT_EQ(ref_query()(&host.table, nullptr), api);
}

// KVB-3
TEST(Entry, RefusesWhatCannotBeAHost) {
  TestHost host;
  kv_error error{};
  EXPECT_EQ(ref_query()(nullptr, &error), nullptr);
  EXPECT_EQ(error.code, KV_INVALID_ARGUMENT);

  kvb_host broken = host.table;
  broken.struct_size = 0;
  EXPECT_EQ(ref_query()(&broken, &error), nullptr);
  EXPECT_EQ(error.code, KV_INVALID_ARGUMENT);

  broken = host.table;
  broken.abi_version = KVB_ABI_VERSION + 1;
  EXPECT_EQ(ref_query()(&broken, &error), nullptr);
  EXPECT_EQ(error.code, KV_INCOMPATIBLE);
  EXPECT_STREQ(error.message, "the plugin is built for backend ABI 0 draft 1, the host has 0 draft 2");

  broken = host.table;
  broken.allocator.alloc = nullptr;
  EXPECT_EQ(ref_query()(&broken, &error), nullptr);
  EXPECT_EQ(error.code, KV_INVALID_ARGUMENT);

  broken = host.table;
  broken.struct_size = offsetof(kvb_host, log);  // a host that ends before the allocator
  EXPECT_EQ(ref_query()(&broken, nullptr), nullptr);
}

// KVB-8
TEST(Entry, ReadsAHostFromTheFuture) {
  struct Future {
    kvb_host host;
    uint64_t tail;
  };
  TestHost host;
  Future future{host.table, 0};
  future.host.struct_size = sizeof future;
  kv_error error{};
  EXPECT_NE(ref_query()(&future.host, &error), nullptr) << error.message;
  future.tail = 1;
  EXPECT_EQ(ref_query()(&future.host, &error), nullptr);
  EXPECT_EQ(error.code, KV_UNSUPPORTED);
}

class Device : public RefTest {};

TEST_F(Device, DescribesItself) {
  kv_error error{};
  uint32_t count = 0;
  char reason[64] = "stale";
  ASSERT_EQ(api().device_count(device.instance(), &count, reason, sizeof reason, &error), KV_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(reason, "");
  kvb_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(api().device_info(device.instance(), 0, &info, &error), KV_OK);
  EXPECT_EQ(info.kind, static_cast<uint32_t>(KVB_DEVICE_CPU));
  EXPECT_STREQ(info.name, "Reference (scalar, double)");
  EXPECT_STREQ(api().device_variant(device.get()), "scalar");
}

TEST_F(Device, FillsInfoOfAnySize) {
  struct Longer {
    kvb_device_info info;
    uint64_t tail;
  };
  Longer longer{};
  longer.info.struct_size = sizeof longer;
  longer.tail = 7;
  ASSERT_EQ(api().device_info(device.instance(), 0, &longer.info, nullptr), KV_OK);
  EXPECT_EQ(longer.tail, 0u);
  EXPECT_EQ(longer.info.struct_size, sizeof longer);
  kvb_device_info shorter{};
  shorter.struct_size = 8;
  shorter.name[0] = 'x';
  ASSERT_EQ(api().device_info(device.instance(), 0, &shorter, nullptr), KV_OK);
  EXPECT_EQ(shorter.kind, static_cast<uint32_t>(KVB_DEVICE_CPU));
  EXPECT_EQ(shorter.name[0], 'x');
}

TEST_F(Device, AnswersQueries) {
  EXPECT_EQ(device.query(KVB_QUERY_WEIGHT_TYPES), 0xfffeu);
  EXPECT_EQ(device.query(KVB_QUERY_K_TYPES), 0x3eu);
  EXPECT_EQ(device.query(KVB_QUERY_V_TYPES), 0x3eu);
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS_MIN), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS), 16u);
  EXPECT_EQ(device.query(KVB_QUERY_PAGE_TOKENS_MAX), 4096u);
  EXPECT_EQ(device.query(KVB_QUERY_DETERMINISTIC), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_HOST_MEMORY), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_WEIGHT_IMPORT), 1u);
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), 0u);
  kv_error error{};
  uint64_t value = 42;
  EXPECT_EQ(api().device_query(device.get(), 999, &value, &error), KV_UNSUPPORTED);
  EXPECT_EQ(value, 42u);
  EXPECT_STREQ(error.message, "device query 999 is unknown");
}

TEST_F(Device, RefusesOddRequests) {
  kv_error error{};
  kvb_device* opened = nullptr;
  EXPECT_EQ(api().device_open(device.instance(), 1, nullptr, &opened, &error), KV_NOT_FOUND);
  kvb_device_options options{sizeof options, 0, "avx9"};
  EXPECT_EQ(api().device_open(device.instance(), 0, &options, &opened, &error), KV_UNSUPPORTED);
  EXPECT_STREQ(error.message, "the reference backend has the variant 'scalar' only, not 'avx9'");
  options = {sizeof options, 1, nullptr};
  EXPECT_EQ(api().device_open(device.instance(), 0, &options, &opened, &error), KV_UNSUPPORTED);
  EXPECT_EQ(api().device_open(nullptr, 0, nullptr, &opened, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(opened, nullptr);
  kvb_device_info info{};
  EXPECT_EQ(api().device_info(device.instance(), 0, &info, &error), KV_INVALID_ARGUMENT);  // struct_size 0
  info.struct_size = sizeof info;
  EXPECT_EQ(api().device_info(device.instance(), 1, &info, &error), KV_NOT_FOUND);
  options = {sizeof options, 0, "scalar"};
  ASSERT_EQ(api().device_open(device.instance(), 0, &options, &opened, &error), KV_OK);
  api().device_close(opened);
}

// KVB-9
TEST_F(Device, AcceptsNullWhereItDestroys) {
  api().queue_destroy(nullptr);
  api().program_destroy(nullptr);
  api().cache_destroy(nullptr);
  api().weight_destroy(nullptr);
  api().device_close(nullptr);
  api().instance_destroy(nullptr);
}

}  // namespace
}  // namespace kvasir::testing
