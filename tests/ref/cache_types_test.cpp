// SPDX-License-Identifier: MIT
//
// What a cache stores, to the byte, for every cache type, and what it reads back as.
#include <cmath>
#include <limits>

#include "cache_fixture.h"
#include "sdk/half.h"

namespace kvasir::testing {
namespace {

class CacheTypes : public CacheTest {
 protected:
  // Stored bytes of one head holding `x`.
  std::vector<unsigned char> bytes_of(uint32_t type, const std::vector<float>& x, size_t bytes) {
    const CacheSpec cache_spec = spec(type, static_cast<uint32_t>(x.size()));
    const Owned<kvb_cache> cache = make_cache(device, queue.get(), cache_spec, {1});
    std::vector<float> row = x;
    row.insert(row.end(), x.begin(), x.end());
    store(cache_spec, cache.get(), 1, row, {0});
    back = read_cache(device, queue.get(), cache.get(), 1, KVB_ROWS_K, 0, 0, 1, static_cast<uint32_t>(x.size()));
    const std::vector<unsigned char> k = stored(cache.get(), 1, KVB_ROWS_K, 0, 0, 1, bytes);
    EXPECT_EQ(stored(cache.get(), 1, KVB_ROWS_V, 0, 0, 1, bytes), k);
    return k;
  }

  static uint16_t scale_of(const std::vector<unsigned char>& bytes) {
    return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  }
  static std::vector<int> codes(const std::vector<unsigned char>& bytes) { return {bytes.begin() + 2, bytes.end()}; }
  // A block with the given first elements, zeros behind them.
  static std::vector<float> block(std::vector<float> x) {
    x.resize(32);
    return x;
  }

  std::vector<float> back;
};

// KVB-17, for this and the tests below.
TEST_F(CacheTypes, FloatsAndHalves) {
  const std::vector<float> x = {1.0f, -2.5f, 1.0009765f};
  bytes_of(KV_TYPE_F32, x, 12);
  EXPECT_EQ(back, x);
  EXPECT_EQ(bytes_of(KV_TYPE_F16, x, 6), (std::vector<unsigned char>{0x00, 0x3c, 0x00, 0xc1, 0x01, 0x3c}));
  EXPECT_EQ(back, (std::vector<float>{1.0f, -2.5f, 1.0009765625f}));
  EXPECT_EQ(bytes_of(KV_TYPE_BF16, x, 6), (std::vector<unsigned char>{0x80, 0x3f, 0x20, 0xc0, 0x80, 0x3f}));
  EXPECT_EQ(back, (std::vector<float>{1.0f, -2.5f, 1.0f}));
}

TEST_F(CacheTypes, Q8RoundsToEvenOfTheUnroundedScale) {
  const std::vector<unsigned char> bytes =
      bytes_of(KV_TYPE_Q8_0, block({127, -127, 0.5f, 1.5f, 2.5f, -0.5f, 63.4f}), 34);
  EXPECT_EQ(scale_of(bytes), 0x3c00);  // 1
  std::vector<int> first = codes(bytes);
  first.resize(7);
  EXPECT_EQ(first, (std::vector<int>{127, 256 - 127, 0, 2, 2, 0, 63}));
  EXPECT_EQ(back[3], 2);

  // amax / 127 is no f16: d is rounded, codes are taken against the scale before rounding.
  const std::vector<unsigned char> odd = bytes_of(KV_TYPE_Q8_0, block({1, 0.5f, -1}), 34);
  EXPECT_EQ(scale_of(odd), sdk::f16_from_f32(1.0f / 127));
  EXPECT_EQ(odd[2], 127);
  EXPECT_EQ(odd[3], 64);  // 63.5 rounds to even
  EXPECT_EQ(odd[4], 256 - 127);
}

TEST_F(CacheTypes, Q4KeepsTheSignOfTheExtreme) {
  // m = -8: d = 1, codes x + 8
  const std::vector<unsigned char> bytes = bytes_of(KV_TYPE_Q4_0, block({-8, 8, 7, 0.5f, 1.5f}), 18);
  EXPECT_EQ(scale_of(bytes), 0x3c00);
  EXPECT_EQ(bytes[2] & 15, 0);
  EXPECT_EQ(bytes[3] & 15, 15);  // +8 is limited to 7
  EXPECT_EQ(bytes[4] & 15, 15);
  EXPECT_EQ(bytes[5] & 15, 8);   // 0.5 rounds to even
  EXPECT_EQ(bytes[6] & 15, 10);  // 1.5 too
  EXPECT_EQ(bytes[2] >> 4, 8);   // zero
  EXPECT_EQ(back[0], -8);
  EXPECT_EQ(back[1], 7);
  // m = +4: d = -1/2
  EXPECT_EQ(scale_of(bytes_of(KV_TYPE_Q4_0, block({4, 1}), 18)), 0xb800);
  EXPECT_EQ(back[0], 4);
  EXPECT_EQ(back[1], 1);
}

TEST_F(CacheTypes, ZeroAndUnderflow) {
  for (const float tiny : {0.0f, 1e-10f, -std::numeric_limits<float>::denorm_min()}) {
    const std::vector<unsigned char> q8 = bytes_of(KV_TYPE_Q8_0, block({tiny, -tiny}), 34);
    EXPECT_EQ(q8, std::vector<unsigned char>(34)) << tiny;
    const std::vector<unsigned char> q4 = bytes_of(KV_TYPE_Q4_0, block({tiny, -tiny}), 18);
    EXPECT_EQ(scale_of(q4), 0) << tiny;
    EXPECT_EQ(q4[2], 0x88) << tiny;
    EXPECT_EQ(back[0], 0);
  }
  // 127 * 2^-25 is halfway to the smallest f16 and rounds to even, zero; anything above does not.
  EXPECT_EQ(scale_of(bytes_of(KV_TYPE_Q8_0, block({std::ldexp(127.0f, -25)}), 34)), 0);
  EXPECT_EQ(scale_of(bytes_of(KV_TYPE_Q8_0, block({std::ldexp(127.5f, -25)}), 34)), 1);
}

TEST_F(CacheTypes, OverflowSaturatesTheScale) {
  const std::vector<unsigned char> q8 = bytes_of(KV_TYPE_Q8_0, block({3e38f, -3e38f, 65504.0f, 3 * 65504.0f}), 34);
  EXPECT_EQ(scale_of(q8), 0x7bff);
  EXPECT_EQ(codes(q8)[0], 127);
  EXPECT_EQ(codes(q8)[1], 256 - 127);
  EXPECT_EQ(codes(q8)[2], 1);
  EXPECT_EQ(codes(q8)[3], 3);
  const std::vector<unsigned char> q4 = bytes_of(KV_TYPE_Q4_0, block({1e30f, -1e30f, -65504.0f}), 18);
  EXPECT_EQ(scale_of(q4), 0xfbff);  // m / -8 is negative
  EXPECT_EQ(q4[2] & 15, 0);
  EXPECT_EQ(q4[3] & 15, 15);
  EXPECT_EQ(q4[4] & 15, 9);
}

TEST_F(CacheTypes, BrokenValuesMakeTheBlockNan) {
  for (const float broken : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const uint32_t type : {KV_TYPE_Q8_0, KV_TYPE_Q4_0}) {
      const std::vector<unsigned char> bytes = bytes_of(type, block({1, broken}), type == KV_TYPE_Q8_0 ? 34 : 18);
      EXPECT_EQ(scale_of(bytes), 0x7e00);
      EXPECT_EQ(bytes[2], type == KV_TYPE_Q8_0 ? 0 : 0x88);
      for (const float value : back) EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST_F(CacheTypes, HeadsArePaddedToWholeBlocks) {
  std::vector<float> x(40, 0.25f);
  x[39] = 4;  // alone with seven quarters in the second block
  const std::vector<unsigned char> q8 = bytes_of(KV_TYPE_Q8_0, x, 68);
  EXPECT_EQ(q8[34 + 2 + 7], 127);
  EXPECT_EQ(std::vector<unsigned char>(q8.begin() + 34 + 10, q8.end()), std::vector<unsigned char>(24));
  EXPECT_NEAR(back[39], 4, 4 * 0x1p-11);
  const std::vector<unsigned char> q4 = bytes_of(KV_TYPE_Q4_0, x, 36);
  EXPECT_EQ(q4[18 + 2 + 8], 0x88);
}

TEST_F(CacheTypes, RoundTripErrorIsBounded) {
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 1.7f);
  bytes_of(KV_TYPE_Q8_0, x, 68);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1.0 / 127);
  bytes_of(KV_TYPE_Q4_0, x, 36);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1.01 / 8);
}

}  // namespace
}  // namespace kvasir::testing
