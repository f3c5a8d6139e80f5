// SPDX-License-Identifier: MIT
//
// Conversions at load: which type is chosen, that Loss::none keeps every bit, and how much Loss::small costs. The bounds
// are those in the comment of convert.cpp.
#include "model/convert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random_model.h"

namespace kvasir {
namespace {

using testing::Random;

constexpr uint64_t kCpu = type_bit(KV_TYPE_F32) | type_bit(KV_TYPE_F16) | type_bit(KV_TYPE_BF16) |
                          type_bit(KV_TYPE_Q8_0) | type_bit(KV_TYPE_Q4_0) | type_bit(KV_TYPE_Q4_K) |
                          type_bit(KV_TYPE_Q6_K);

std::vector<float> widen(uint32_t type, const std::vector<uint8_t>& data, uint64_t values) {
  std::vector<float> x(values);
  dequantize(type, data.data(), values, x.data());
  return x;
}

// Relative rms error of random weights of standard deviation 0.02, as trained ones have.
double error_of(uint32_t from, uint32_t to, bool* exact) {
  constexpr uint64_t kValues = 256 * 64;
  Random random(from * 100 + to);
  const std::vector<uint8_t> source = testing::random_values(from, kValues, 0.0F, 0.02F, &random);
  uint64_t bytes = 0;
  EXPECT_TRUE(row_bytes(to, kValues, &bytes));
  std::vector<uint8_t> target(bytes);
  const Status status = convert(from, source.data(), kValues, to, target.data());
  EXPECT_TRUE(status.ok()) << status.message();
  const std::vector<float> a = widen(from, source, kValues);
  const std::vector<float> b = widen(to, target, kValues);
  *exact = a == b;
  double power = 0;
  double error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    power += double{a[i]} * a[i];
    error += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  }
  return std::sqrt(error / power);
}

TEST(Convert, WhatTheCpuBackendGets) {
  struct Row {
    uint32_t type, none, small;
  };
  const Row rows[] = {
      {KV_TYPE_F32, KV_TYPE_F32, KV_TYPE_F32},     {KV_TYPE_F16, KV_TYPE_F16, KV_TYPE_F16},
      {KV_TYPE_BF16, KV_TYPE_BF16, KV_TYPE_BF16},  {KV_TYPE_Q8_0, KV_TYPE_Q8_0, KV_TYPE_Q8_0},
      {KV_TYPE_Q4_0, KV_TYPE_Q4_0, KV_TYPE_Q4_0},  {KV_TYPE_Q4_1, KV_TYPE_F32, KV_TYPE_F16},
      {KV_TYPE_Q5_0, KV_TYPE_Q8_0, KV_TYPE_Q8_0},  {KV_TYPE_Q5_1, KV_TYPE_F32, KV_TYPE_F16},
      {KV_TYPE_Q2_K, KV_TYPE_F32, KV_TYPE_F16},    {KV_TYPE_Q3_K, KV_TYPE_Q6_K, KV_TYPE_Q6_K},
      {KV_TYPE_Q4_K, KV_TYPE_Q4_K, KV_TYPE_Q4_K},  {KV_TYPE_Q5_K, KV_TYPE_F32, KV_TYPE_F16},
      {KV_TYPE_Q6_K, KV_TYPE_Q6_K, KV_TYPE_Q6_K},  {KV_TYPE_IQ4_NL, KV_TYPE_Q8_0, KV_TYPE_Q8_0},
      {KV_TYPE_IQ4_XS, KV_TYPE_F32, KV_TYPE_Q8_0},
  };
  ASSERT_EQ(std::size(rows), kTypeCount - 1);
  for (const Row& row : rows) {
    EXPECT_EQ(nearest_supported(row.type, kCpu, Loss::none), row.none) << type_name(row.type);
    EXPECT_EQ(nearest_supported(row.type, kCpu, Loss::small), row.small) << type_name(row.type);
  }
}

TEST(Convert, WhatABackendOfFloatsGets) {
  for (uint32_t type = KV_TYPE_F32; type < kTypeCount; ++type) {
    EXPECT_EQ(nearest_supported(type, type_bit(KV_TYPE_F32), Loss::small), static_cast<uint32_t>(KV_TYPE_F32));
    EXPECT_EQ(nearest_supported(type, ~uint64_t{0}, Loss::none), type);
    EXPECT_EQ(nearest_supported(type, 0, Loss::small), static_cast<uint32_t>(KV_TYPE_DEFAULT));
  }
  EXPECT_EQ(nearest_supported(KV_TYPE_F32, type_bit(KV_TYPE_F16), Loss::small), static_cast<uint32_t>(KV_TYPE_DEFAULT));
  EXPECT_EQ(nearest_supported(KV_TYPE_DEFAULT, kCpu, Loss::small), static_cast<uint32_t>(KV_TYPE_DEFAULT));
  EXPECT_EQ(nearest_supported(99, kCpu, Loss::small), static_cast<uint32_t>(KV_TYPE_DEFAULT));
}

// Every choice from every set of targets keeps its promise.
TEST(Convert, LosesNoMoreThanPromised) {
  const uint32_t targets[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_Q8_0, KV_TYPE_Q6_K};
  for (uint32_t from = KV_TYPE_F32; from < kTypeCount; ++from) {
    for (const uint32_t target : targets) {
      for (const Loss loss : {Loss::none, Loss::small}) {
        const uint32_t to = nearest_supported(from, type_bit(target), loss);
        if (to == KV_TYPE_DEFAULT) continue;
        bool exact = false;
        const double error = error_of(from, to, &exact);
        EXPECT_TRUE(exact || loss == Loss::small) << type_name(from) << " to " << type_name(to) << ": " << error;
        EXPECT_LE(error, 3e-4) << type_name(from) << " to " << type_name(to);
      }
    }
  }
}

TEST(Convert, MeasuredErrors) {
  bool exact = false;
  EXPECT_LE(error_of(KV_TYPE_IQ4_XS, KV_TYPE_Q8_0, &exact), 2.3e-4);
  EXPECT_FALSE(exact);
  for (const uint32_t from : {KV_TYPE_Q4_1, KV_TYPE_Q5_1, KV_TYPE_Q2_K, KV_TYPE_Q5_K, KV_TYPE_Q4_K, KV_TYPE_Q6_K}) {
    const double error = error_of(from, KV_TYPE_F16, &exact);
    RecordProperty(std::string("f16_") + type_name(from), std::to_string(error));
    EXPECT_LE(error, 2.2e-4) << type_name(from);
    EXPECT_FALSE(exact) << "so that Loss::none must not choose f16";
  }
}

// A scale and code of every kind, not only likely ones.
TEST(Convert, KeepsEveryCode) {
  for (const auto& [from, to] : {std::pair<uint32_t, uint32_t>{KV_TYPE_Q4_0, KV_TYPE_Q8_0},
                                 {KV_TYPE_Q5_0, KV_TYPE_Q8_0},
                                 {KV_TYPE_IQ4_NL, KV_TYPE_Q8_0},
                                 {KV_TYPE_Q3_K, KV_TYPE_Q6_K}}) {
    const TypeInfo& info = *type_info(from);
    for (const int fill : {0x00, 0xFF, 0x5A, 0xA5, 0x0F, 0xF0}) {
      std::vector<uint8_t> block(info.block_bytes, static_cast<uint8_t>(fill));
      testing::put_u16(f32_to_f16(0.75F), &block[from == KV_TYPE_Q3_K ? 108 : 0]);
      std::vector<uint8_t> out(210);
      ASSERT_TRUE(convert(from, block.data(), info.block_values, to, out.data()).ok());
      EXPECT_EQ(widen(from, block, info.block_values), widen(to, out, info.block_values)) << info.name << " " << fill;
    }
  }
}

TEST(Convert, RefusesWhatDoesNotFit) {
  std::vector<uint8_t> block(18, 0xFF);  // 7 * 65504
  testing::put_u16(0x7BFF, block.data());
  std::vector<uint8_t> out(64);
  Status status = convert(KV_TYPE_Q4_0, block.data(), 32, KV_TYPE_F16, out.data());
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "value 0 is greater than 65504 and does not fit f16");
  status = convert(KV_TYPE_F32, out.data(), 1, KV_TYPE_Q8_0, out.data());
  EXPECT_EQ(status.code(), KV_INTERNAL);
  EXPECT_STREQ(status.message(), "there is no conversion from type f32 to q8_0");
}

}  // namespace
}  // namespace kvasir
