// SPDX-License-Identifier: MIT
//
// The table a plugin hands out, spoiled in one point at a time.
#include "loader/negotiate.h"

#include <cstddef>
#include <cstring>

#include "plugins/stub.h"
#include "support.h"

namespace kvasir::test {
namespace {

kvb_api table;  // what `query` hands out; each test fills it first

const kvb_api* query(const kvb_host* host, kv_error*) { return host != nullptr ? &table : nullptr; }

class Negotiate : public ::testing::Test {
 protected:
  Negotiate() { table = stub::table("stub"); }
  Status negotiate(std::string_view name = "stub") { return kvasir::negotiate(query, name, host_, &api_); }
  void expect_refused(const std::string& text) {
    EXPECT_TRUE(fails_with(negotiate(), KV_INCOMPATIBLE, text));
    EXPECT_EQ(api_, nullptr);
  }

  const kvb_host host_ = {};
  const kvb_api* api_ = nullptr;
};

TEST_F(Negotiate, AGoodTable) {
  ASSERT_TRUE(negotiate().ok());
  EXPECT_EQ(api_, &table);
}

TEST_F(Negotiate, EveryMandatoryPointer) {
  constexpr size_t kFirst = offsetof(kvb_api, instance_create);
  constexpr void* kNull = nullptr;
  std::string named;
  size_t optional = 0;
  for (size_t offset = kFirst; offset < sizeof table; offset += sizeof kNull) {
    table = stub::table("stub");
    std::memcpy(reinterpret_cast<char*>(&table) + offset, &kNull, sizeof kNull);
    api_ = nullptr;
    const Status status = negotiate();
    if (offset == offsetof(kvb_api, cache_move_rows)) {
      EXPECT_TRUE(status.ok());
      ++optional;
      continue;
    }
    EXPECT_TRUE(fails_with(status, KV_INCOMPATIBLE, "lacks the mandatory function ")) << offset;
    EXPECT_NE(status.message(), named) << "named twice";
    named = status.message();
    EXPECT_EQ(api_, nullptr);
  }
  EXPECT_EQ(optional, 1u);
  EXPECT_EQ(named, "its table lacks the mandatory function extension");
}

TEST_F(Negotiate, AnotherDraftOrMajor) {
  table.abi_version = KVB_ABI_VERSION + 1;
  expect_refused("it was built for backend ABI 0 draft " + std::to_string(KVB_ABI_DRAFT + 1) + ", this library has 0");
  table.abi_version = KVB_ABI_VERSION - 1;
  expect_refused("this library has 0 draft " + std::to_string(KVB_ABI_DRAFT));
  table.abi_version = 3u << 16 | 5;
  expect_refused("it was built for backend ABI 3 draft 5");
}

TEST_F(Negotiate, SizeOfTheTable) {
  table.struct_size = sizeof table - 1;
  expect_refused("its table has " + std::to_string(sizeof table - 1) + " bytes, " + std::to_string(sizeof table));
  table.struct_size = 0;
  expect_refused("its table has 0 bytes");
  table.struct_size = sizeof table + 64;
  EXPECT_TRUE(negotiate().ok());
}

TEST_F(Negotiate, Name) {
  EXPECT_TRUE(fails_with(negotiate("other"), KV_INCOMPATIBLE, "it calls itself 'stub', its file name says 'other'"));
  EXPECT_TRUE(fails_with(negotiate("stu"), KV_INCOMPATIBLE, "calls itself"));
  table.name = "";
  expect_refused("it calls itself ''");
  const std::string endless(5000, 'x');
  table.name = endless.c_str();
  expect_refused("it calls itself 'xxxx");
  table.name = nullptr;
  expect_refused("its table has no name");
}

TEST_F(Negotiate, Version) {
  table.version = nullptr;
  expect_refused("its table has no version");
  table.version = "";
  expect_refused("its table has no version");
  const std::string endless(5000, '1');
  table.version = endless.c_str();
  expect_refused("its version has more than 63 bytes");
}

TEST_F(Negotiate, NoTable) {
  const auto silent = [](const kvb_host*, kv_error*) -> const kvb_api* { return nullptr; };
  EXPECT_TRUE(fails_with(kvasir::negotiate(silent, "stub", host_, &api_), KV_INCOMPATIBLE, "gave no reason"));
  const auto code_only = [](const kvb_host*, kv_error* error) -> const kvb_api* {
    error->code = KV_OUT_OF_MEMORY;
    return nullptr;
  };
  EXPECT_TRUE(fails_with(kvasir::negotiate(code_only, "stub", host_, &api_), KV_OUT_OF_MEMORY, "no reason given"));
  const auto unterminated = [](const kvb_host*, kv_error* error) -> const kvb_api* {
    error->code = KV_UNSUPPORTED;
    std::memset(error->message, 'y', sizeof error->message);
    return nullptr;
  };
  EXPECT_TRUE(
      fails_with(kvasir::negotiate(unterminated, "stub", host_, &api_), KV_UNSUPPORTED, "serve this library: y"));
  EXPECT_EQ(api_, nullptr);
}

}  // namespace
}  // namespace kvasir::test
