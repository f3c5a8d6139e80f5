// SPDX-License-Identifier: MIT
//
// dequantize against a second reading of the layouts, block by block in storage order and in double, on random blocks;
// f16 against arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/convert.h"
#include "model/half.h"
#include "support/random_model.h"

namespace kvasir {
namespace {

using testing::Random;

double half_at(const uint8_t* data) {
  const uint32_t bits = static_cast<uint32_t>(data[0]) | static_cast<uint32_t>(data[1]) << 8;
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const auto exponent = static_cast<int>((bits >> 10) & 31U);
  const double fraction = (bits & 1023U) / 1024.0;
  return exponent == 0 ? sign * fraction * 0x1p-14 : sign * std::ldexp(1.0 + fraction, exponent - 15);
}

// The six-bit pairs of Q4_K and Q5_K, unpacked as a whole.
void unpack_pairs(const uint8_t* s, int* scales, int* minimums) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = s[j] % 64;
    minimums[j] = s[j + 4] % 64;
    scales[j + 4] = s[j + 8] % 16 + s[j] / 64 * 16;
    minimums[j + 4] = s[j + 8] / 16 + s[j + 4] / 64 * 16;
  }
}

std::vector<double> read_small_block(uint32_t type, const uint8_t* b) {
  static const int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const bool minimum = type == KV_TYPE_Q4_1 || type == KV_TYPE_Q5_1;
  const bool fifth = type == KV_TYPE_Q5_0 || type == KV_TYPE_Q5_1;
  const double d = half_at(b);
  const double m = minimum ? half_at(b + 2) : 0.0;
  const uint8_t* at = b + (minimum ? 4 : 2);
  uint32_t high = 0;
  if (fifth) {
    std::memcpy(&high, at, 4);
    at += 4;
  }
  std::vector<double> x(32);
  for (size_t i = 0; i < 16; ++i) {
    const int low = at[i] % 16 + static_cast<int>((high >> i) % 2 * 16);
    const int top = at[i] / 16 + static_cast<int>((high >> (i + 16)) % 2 * 16);
    if (type == KV_TYPE_IQ4_NL) {
      x[i] = d * kTable[low];
      x[i + 16] = d * kTable[top];
    } else {
      const int zero = minimum ? 0 : fifth ? 16 : 8;
      x[i] = d * (low - zero) + m;
      x[i + 16] = d * (top - zero) + m;
    }
  }
  return x;
}

std::vector<double> read_q2_q3_k(uint32_t type, const uint8_t* b) {
  std::vector<double> x;
  const bool three = type == KV_TYPE_Q3_K;
  const uint8_t* q = b + (three ? 32 : 16);
  int scale3[16];
  for (int j = 0; j < 8 && three; ++j) {
    scale3[j] = b[96 + j] % 16;
    scale3[j + 8] = b[96 + j] / 16;
  }
  for (int j = 0; j < 16 && three; ++j) scale3[j] += b[104 + j % 4] / (1 << (j / 4 * 2)) % 4 * 16;
  int group = 0;
  int mask = 1;
  for (int half = 0; half < 2; ++half, q += 32) {
    for (int pair = 0; pair < 4; ++pair, mask *= 2) {
      for (int l = 0; l < 32; ++l) {
        const int code = q[l] / (1 << (2 * pair)) % 4;
        const int g = group + l / 16;
        if (three) {
          x.push_back(half_at(b + 108) * (scale3[g] - 32) * (code - ((b[l] & mask) != 0 ? 0 : 4)));
        } else {
          x.push_back(half_at(b + 80) * (b[g] % 16) * code - half_at(b + 82) * (b[g] / 16));
        }
      }
      group += 2;
    }
  }
  return x;
}

std::vector<double> read_q4_q5_k(uint32_t type, const uint8_t* b) {
  std::vector<double> x;
  int scales[8];
  int minimums[8];
  unpack_pairs(b + 4, scales, minimums);
  const bool five = type == KV_TYPE_Q5_K;
  const uint8_t* q = b + (five ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) {
      int code = j % 2 == 0 ? q[l] % 16 : q[l] / 16;
      if (five && (b[16 + l] & (1 << j)) != 0) code += 16;
      x.push_back(half_at(b) * scales[j] * code - half_at(b + 2) * minimums[j]);
    }
    if (j % 2 == 1) q += 32;
  }
  return x;
}

std::vector<double> read_q6_k(const uint8_t* b) {
  std::vector<double> x(256);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* l = b + half * 64;
    const uint8_t* h = b + 128 + half * 32;
    for (int i = 0; i < 32; ++i) {
      const int codes[4] = {l[i] % 16 + h[i] % 4 * 16, l[i + 32] % 16 + h[i] / 4 % 4 * 16,
                            l[i] / 16 + h[i] / 16 % 4 * 16, l[i + 32] / 16 + h[i] / 64 * 16};
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int at = half * 128 + quarter * 32 + i;
        x[static_cast<size_t>(at)] = half_at(b + 208) * static_cast<int8_t>(b[192 + at / 16]) * (codes[quarter] - 32);
      }
    }
  }
  return x;
}

std::vector<double> read_iq4_xs(const uint8_t* b) {
  std::vector<double> x;
  for (int j = 0; j < 8; ++j) {
    const int low = j % 2 == 0 ? b[4 + j / 2] % 16 : b[4 + j / 2] / 16;
    const int high = (b[2] + b[3] * 256) / (1 << (2 * j)) % 4;
    uint8_t nl[18] = {0x00, 0x3C};  // a scale of 1
    std::memcpy(nl + 2, b + 8 + 16 * j, 16);
    for (const double v : read_small_block(KV_TYPE_IQ4_NL, nl)) x.push_back(half_at(b) * (low + high * 16 - 32) * v);
  }
  return x;
}

std::vector<double> read_block(uint32_t type, const uint8_t* b) {
  switch (type) {
    case KV_TYPE_Q8_0: {
      std::vector<double> x;
      for (int i = 0; i < 32; ++i) x.push_back(half_at(b) * static_cast<int8_t>(b[2 + i]));
      return x;
    }
    case KV_TYPE_Q2_K:
    case KV_TYPE_Q3_K: return read_q2_q3_k(type, b);
    case KV_TYPE_Q4_K:
    case KV_TYPE_Q5_K: return read_q4_q5_k(type, b);
    case KV_TYPE_Q6_K: return read_q6_k(b);
    case KV_TYPE_IQ4_XS: return read_iq4_xs(b);
    default: return read_small_block(type, b);
  }
}

class Dequantize : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Dequantize, GivesTheBitsOfTheFormula) {
  const uint32_t type = GetParam();
  const TypeInfo& info = *type_info(type);
  Random random(type);
  constexpr uint32_t kBlocks = 50;
  const uint32_t values = kBlocks * info.block_values;
  std::vector<uint8_t> data(1);  // and a misaligned source
  const std::vector<uint8_t> blocks = testing::random_values(type, values, 0.0F, 1.0F, &random);
  data.insert(data.end(), blocks.begin(), blocks.end());
  std::vector<float> x(values);
  dequantize(type, data.data() + 1, values, x.data());
  for (uint32_t i = 0; i < kBlocks; ++i) {
    const std::vector<double> expected = read_block(type, blocks.data() + i * info.block_bytes);
    ASSERT_EQ(expected.size(), info.block_values);
    for (uint32_t j = 0; j < info.block_values; ++j) {
      ASSERT_EQ(x[i * info.block_values + j], static_cast<float>(expected[j])) << info.name << " value " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BlockTypes, Dequantize, ::testing::Range<uint32_t>(KV_TYPE_Q8_0, kTypeCount),
                         [](const auto& test) { return std::string(type_name(test.param)); });

TEST(Half, EveryF16ComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float x = f16_to_f32(half);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(x))));
      continue;
    }
    ASSERT_EQ(f32_to_f16(x), half);
    if ((bits & 0x7C00U) == 0x7C00U) continue;
    const uint8_t bytes[2] = {static_cast<uint8_t>(bits & 255), static_cast<uint8_t>(bits >> 8)};
    ASSERT_EQ(static_cast<double>(x), half_at(bytes));
  }
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {  // between each pair of neighbours
    const float low = f16_to_f32(static_cast<uint16_t>(bits));
    const float high = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(f32_to_f16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), bits + 1);
  }
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
  EXPECT_EQ(f32_to_f16(1e-30F), 0);
}

TEST(Dequantize, PlainTypes) {
  const float values[3] = {1.5F, -0.0F, 1e-40F};
  float out[3] = {};
  dequantize(KV_TYPE_F32, values, 3, out);
  EXPECT_EQ(std::memcmp(values, out, sizeof out), 0);
  const uint16_t bf16[2] = {0x3FC0, 0xFF80};
  dequantize(KV_TYPE_BF16, bf16, 2, out);
  EXPECT_EQ(out[0], 1.5F);
  EXPECT_EQ(out[1], -std::numeric_limits<float>::infinity());
  const uint16_t f16[2] = {0x3E00, 0x0001};
  dequantize(KV_TYPE_F16, f16, 2, out);
  EXPECT_EQ(out[0], 1.5F);
  EXPECT_EQ(out[1], 0x1p-24F);
}

}  // namespace
}  // namespace kvasir
