// SPDX-License-Identifier: MIT
//
// The helpers of backends/sdk that need no backend: half precision, errors, struct sizes, strides, host memory, the
// floating-point scope.
#include <cfenv>
#include <cmath>
#include <limits>
#include <string>

#include "ref_fixture.h"
#include "sdk/fpstate.h"
#include "sdk/half.h"
#include "sdk/host_memory.h"
#include "sdk/types.h"
#include "sdk/walk.h"

namespace kvasir::testing {
namespace {

// Every f16 is a double m * 2^e; the nearest one to any float can be found by looking at the two neighbours.
double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, WidensEveryValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = sdk::f32_from_f16(half);
    if ((bits >> 10 & 31) == 31) {
      EXPECT_EQ(std::isnan(value), (bits & 1023) != 0);
      EXPECT_EQ(std::isinf(value), (bits & 1023) == 0);
    } else {
      ASSERT_EQ(double{value}, f16_value(half)) << bits;
    }
    if (!std::isnan(value)) {
      ASSERT_EQ(sdk::f16_from_f32(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = f16_value(static_cast<uint16_t>(bits));
    const double high = f16_value(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact in f32
    const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
    ASSERT_EQ(sdk::f16_from_f32(middle), even);
    ASSERT_EQ(sdk::f16_from_f32(-middle), even | 0x8000u);
    ASSERT_EQ(sdk::f16_from_f32(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(sdk::f16_from_f32(std::nextafter(middle, -1e9f)), bits);
  }
  EXPECT_EQ(sdk::f16_from_f32(65519.996f), 0x7bff);
  EXPECT_EQ(sdk::f16_from_f32(65520.0f), 0x7c00);
  EXPECT_EQ(sdk::f16_from_f32(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_TRUE(std::isnan(sdk::f32_from_f16(sdk::f16_from_f32(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Bfloat, RoundsToNearestEven) {
  EXPECT_EQ(sdk::bf16_from_f32(1.0f), 0x3f80);
  EXPECT_EQ(sdk::bf16_from_f32(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(sdk::bf16_from_f32(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(sdk::bf16_from_f32(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(sdk::bf16_from_f32(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(sdk::f32_from_bf16(sdk::bf16_from_f32(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(sdk::f32_from_bf16(0xc040), -3.0f);
}

TEST(Errors, FillAndCut) {
  EXPECT_EQ(sdk::fail(nullptr, KV_IO, "unseen %d", 1), KV_IO);
  kv_error error{};
  EXPECT_EQ(sdk::fail(&error, KV_IO, "row %u of %u", 3u, 2u), KV_IO);
  EXPECT_EQ(error.code, KV_IO);
  EXPECT_STREQ(error.message, "row 3 of 2");
  // The 503rd byte would be the first of the two of an e acute: the character goes as a whole.
  const std::string text = std::string(502, 'x') + "\xc3\xa9" + "yy";
  sdk::fail(&error, KV_IO, "%s", text.c_str());
  EXPECT_EQ(std::string(error.message), std::string(502, 'x'));
  const std::string fits = std::string(501, 'x') + "\xc3\xa9";
  sdk::fail(&error, KV_IO, "%s", fits.c_str());
  EXPECT_EQ(std::string(error.message), fits);
}

TEST(Errors, GuardCatchesEverything) {
  kv_error error{};
  const auto throwing = [&](auto exception) { return sdk::guard(&error, [&]() -> kv_status { throw exception; }); };
  EXPECT_EQ(throwing(std::bad_alloc()), KV_OUT_OF_MEMORY);
  EXPECT_EQ(throwing(std::length_error("")), KV_OUT_OF_MEMORY);
  EXPECT_EQ(throwing(std::runtime_error("odd")), KV_INTERNAL);
  EXPECT_STREQ(error.message, "the backend failed unexpectedly: odd");
  EXPECT_EQ(throwing(42), KV_INTERNAL);
  EXPECT_EQ(sdk::guard(&error, [] { return kv_status{KV_TIMEOUT}; }), KV_TIMEOUT);
}

struct Sample {
  uint32_t struct_size;
  uint32_t a;
  uint64_t b;
};

TEST(Structs, ReadBySize) {
  kv_error error{};
  Sample out{};
  struct {
    Sample known;
    uint64_t tail[2];
  } longer{{sizeof longer, 1, 2}, {0, 0}};
  EXPECT_EQ(sdk::read_struct(&longer.known, "it", &out, &error), KV_OK);
  EXPECT_EQ(out.a, 1u);
  EXPECT_EQ(out.b, 2u);
  EXPECT_EQ(out.struct_size, sizeof(Sample));
  longer.tail[1] = 1;
  EXPECT_EQ(sdk::read_struct(&longer.known, "it", &out, &error), KV_UNSUPPORTED);
  EXPECT_STREQ(error.message, "it is 32 bytes long and uses a field beyond the 16 bytes known here");

  const Sample shorter{8, 3, 4};
  EXPECT_EQ(sdk::read_struct(&shorter, "it", &out, &error), KV_OK);
  EXPECT_EQ(out.a, 3u);
  EXPECT_EQ(out.b, 0u);
  for (const uint32_t size : {0u, 4u, 12u, 17u, 0xfffffff0u}) {
    const Sample odd{size, 9, 9};
    EXPECT_EQ(sdk::read_struct(&odd, "it", &out, &error), KV_INVALID_ARGUMENT) << size;
  }
  EXPECT_EQ(sdk::read_struct<Sample>(nullptr, "it", &out, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(out.a, 3u);
}

TEST(Structs, StepByStride) {
  struct Wide {
    kvb_cache_move move;
    uint64_t tail;
  };
  Wide wide[2] = {{{1, 2, 3, 4, 5, 6}, 0}, {{7, 8, 9, 10, 11, 12}, 0}};
  const sdk::StrideView<kvb_cache_move> view(&wide[0].move, 2, sizeof(Wide));
  EXPECT_EQ(view.check("moves", nullptr), KV_OK);
  EXPECT_EQ(view[1].to_page, 9u);
  wide[1].tail = 1;
  EXPECT_EQ(view.check("moves", nullptr), KV_UNSUPPORTED);
  EXPECT_EQ(sdk::StrideView<kvb_cache_move>(&wide[0].move, 2, 8).check("moves", nullptr), KV_INVALID_ARGUMENT);
  EXPECT_EQ(sdk::StrideView<kvb_cache_move>(nullptr, 2, 24).check("moves", nullptr), KV_INVALID_ARGUMENT);
  EXPECT_EQ(sdk::StrideView<kvb_cache_move>(nullptr, 0, 0).check("moves", nullptr), KV_OK);
}

TEST(HostMemory, CountsAndReleases) {
  TestHost host;
  sdk::HostMemory memory(host.table.allocator);
  sdk::HostBlock block;
  ASSERT_EQ(sdk::HostBlock::allocate(memory, 100, "a test", &block, nullptr), KV_OK);
  EXPECT_EQ(memory.used(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.bytes()) % 64, 0u);
  sdk::HostBlock moved = std::move(block);
  EXPECT_EQ(memory.used(), 100u);
  host.calls_until_failure = 0;
  kv_error error{};
  EXPECT_EQ(sdk::HostBlock::allocate(memory, 7, "a test", &moved, &error), KV_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "the host has no 7 bytes for a test");
  EXPECT_EQ(moved.size(), 100u);
  EXPECT_EQ(sdk::HostBlock::allocate(memory, UINT64_MAX, "a test", &moved, &error), KV_OUT_OF_MEMORY);
  EXPECT_EQ(sdk::HostBlock::allocate(memory, 0, "nothing", &moved, &error), KV_OK);
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(host.live_blocks, 0u);
}

TEST(FloatingPoint, ScopeRunsInTheDefaultStateAndRestores) {
  std::fesetround(FE_UPWARD);
  std::feraiseexcept(FE_INEXACT);
  {
    const sdk::FloatingPointScope scope;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_NE(std::fetestexcept(FE_INEXACT), 0);
  std::fesetround(FE_TONEAREST);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(Types, Sizes) {
  uint64_t bytes = 0;
  EXPECT_TRUE(sdk::tensor_bytes(KV_TYPE_Q6_K, 2, 3, 512, &bytes));
  EXPECT_EQ(bytes, 2u * 3 * 2 * 210);
  EXPECT_FALSE(sdk::tensor_bytes(KV_TYPE_Q4_0, 1, 1, 33, &bytes));
  EXPECT_FALSE(sdk::tensor_bytes(KV_TYPE_F32, UINT32_MAX, UINT32_MAX, UINT32_MAX, &bytes));
  EXPECT_EQ(sdk::padded_bytes(KV_TYPE_Q8_0, 33), 68u);
  EXPECT_STREQ(sdk::type_name(KV_TYPE_IQ4_XS), "iq4_xs");
  EXPECT_STREQ(sdk::type_name(99), "unknown");
  EXPECT_EQ(sdk::kTypeCount, 16u);
}

TEST(Walk, FindsGroups) {
  sdk::Program program;
  program.ops.resize(6);
  const uint16_t groups[6] = {0, 1, 1, 1, 2, 0};
  for (size_t i = 0; i < 6; ++i) program.ops[i].group = groups[i];
  program.ops[1].flags = program.ops[3].flags = program.ops[4].flags = KVB_OP_FLAG_GROUP_BEGIN;
  std::vector<uint32_t> counts;
  for (uint32_t i = 0; i < 6; i += counts.back()) counts.push_back(program.run_at(i).count);
  EXPECT_EQ(counts, (std::vector<uint32_t>{1, 2, 1, 1, 1}));
  EXPECT_EQ(program.run_at(1).group, 1u);
}

}  // namespace
}  // namespace kvasir::testing
