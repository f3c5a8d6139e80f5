// SPDX-License-Identifier: MIT
//
// exp, exp2 and the activations: the errors that simd/generic/math.h states, over the whole range of floats, and equal
// bits from every vector type.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "math_probe.h"
#include "simd/float_state.h"
#include "simd/kernels.h"

namespace kvasir::cpu::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr double kSmallest = std::numeric_limits<float>::min(), kLargest = std::numeric_limits<float>::max();

// Every 4093rd float, of both signs, denormals and infinity included; padded to whole vectors.
std::vector<float> all_floats() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0x7f800000; bits += 4093)
    for (const uint32_t sign : {0u, 0x80000000u}) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) | sign));
  for (float v = -150; v < 150; v += 0.0009765625f) x.push_back(v);
  x.insert(x.end(), {kInfinity, -kInfinity, 0.0f, -0.0f});
  while (x.size() % 16 != 0) x.push_back(1.0f);
  return x;
}

std::vector<float> evaluate(MathProbe::Function f, const std::vector<float>& x) {
  const FloatState state;
  std::vector<float> y(x.size());
  f(x.data(), y.data(), x.size());
  return y;
}

// Relative error, where the exact result is a normal number; outside, zero or infinity.
void expect_power(MathProbe::Function f, double (*exact)(double), double bound) {
  const std::vector<float> x = all_floats(), y = evaluate(f, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(x[i]);
    if (want < kSmallest * (1 - 1e-6)) {
      ASSERT_EQ(y[i], 0.0f) << x[i];
    } else if (want > kLargest * (1 + 1e-6)) {
      ASSERT_EQ(y[i], kInfinity) << x[i];
    } else if (want > kSmallest * (1 + 1e-6) && want < kLargest * (1 - 1e-6)) {
      worst = std::max(worst, std::abs(y[i] - want) / want);
    }
  }
  EXPECT_LT(worst, bound);
  ::testing::Test::RecordProperty("worst", std::to_string(worst * 1e9) + "e-9");
}

TEST(Math, Exp) {
  expect_power(
      probe_scalar::kProbe.exp, [](double x) { return std::exp(x); }, 1e-7);
}
TEST(Math, Exp2) {
  expect_power(
      probe_scalar::kProbe.exp2, [](double x) { return std::exp2(x); }, 1e-7);
}

TEST(Math, ExpOfSpecialValues) {
  for (const auto f : {probe_scalar::kProbe.exp, probe_scalar::kProbe.exp2}) {
    const std::vector<float> y =
        evaluate(f, {0.0f, -0.0f, kNan, kInfinity, -kInfinity, 1e30f, -1e30f, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], kInfinity);
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_EQ(y[5], kInfinity);
    EXPECT_EQ(y[6], 0.0f);
  }
}

double silu(double x) { return x < -700 ? 0 : x / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double relu(double x) { return std::max(x, 0.0); }

// Error relative to max(1, |x|), over all finite floats.
void expect_activation(MathProbe::Function f, double (*exact)(double), double bound) {
  const std::vector<float> x = all_floats(), y = evaluate(f, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) continue;
    const double error = std::abs(y[i] - exact(x[i])) / std::max(1.0, std::abs(double{x[i]}));
    ASSERT_LT(error, bound) << "x = " << x[i] << ": " << y[i] << " against " << exact(x[i]);
    worst = std::max(worst, error);
  }
  EXPECT_TRUE(std::isnan(evaluate(f, std::vector<float>(16, kNan))[3]));
  ::testing::Test::RecordProperty("worst", std::to_string(worst * 1e9) + "e-9");
}

TEST(Math, Silu) { expect_activation(probe_scalar::kProbe.silu, silu, 2e-7); }
TEST(Math, Gelu) { expect_activation(probe_scalar::kProbe.gelu, gelu, 2e-7); }
TEST(Math, GeluTanh) { expect_activation(probe_scalar::kProbe.gelu_tanh, gelu_tanh, 2e-7); }
TEST(Math, Relu) { expect_activation(probe_scalar::kProbe.relu, relu, 1e-37); }

void expect_same_bits(const MathProbe& probe) {
  const std::vector<float> x = all_floats();
  for (const auto f : {&MathProbe::exp, &MathProbe::exp2, &MathProbe::silu, &MathProbe::gelu, &MathProbe::gelu_tanh,
                       &MathProbe::relu}) {
    const std::vector<float> a = evaluate(probe_scalar::kProbe.*f, x), b = evaluate(probe.*f, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << "x = " << x[i];
    }
  }
}

TEST(Math, Avx2GivesTheBitsOfScalar) {
  if (find_kernels("avx2") == nullptr) GTEST_SKIP() << "this processor has no AVX2";
  expect_same_bits(probe_avx2::kProbe);
}
TEST(Math, EmulatedAvx512GivesTheBitsOfScalar) { expect_same_bits(probe_avx512_emulated::kProbe); }

}  // namespace
}  // namespace kvasir::cpu::testing
