// SPDX-License-Identifier: MIT
//
// The optional ops on single rows: layer norm, activations, scaling, soft-cap, parts of heads, a matrix per head,
// top-k.
#include <cmath>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

class OptionalOps : public RefTest {
 protected:
  uint32_t input(uint32_t width) {
    const uint32_t x = builder.tokens(width);
    builder.op(KVB_OP_EMBED, {}, {x});
    return x;
  }
  void output(uint32_t x, uint32_t width) { builder.op(KVB_OP_SELECT_ROWS, {x}, {builder.output(width)}); }
  std::vector<float> run(const std::vector<float>& rows, uint32_t width) { return run_rows(builder, {}, rows, width); }

  ProgramBuilder builder;
};

TEST_F(OptionalOps, LayerNorm) {
  const uint32_t x = input(4);
  const uint32_t y = builder.tokens(4);
  builder.op(KVB_OP_LAYER_NORM, {x, builder.vector({1, 2, 1, 1}), builder.vector({0, 0, 5, 0})}, {y}, {bits(1)});
  output(y, 4);
  // mean 3, deviations -2 0 0 2... variance 2; with eps 3
  const double r = 1 / std::sqrt(3.0);
  expect_near(run({1, 3, 3, 5}, 4), {-2 * r, 0, 5, 2 * r});
}

TEST_F(OptionalOps, LayerNormWithoutWeights) {
  const uint32_t x = input(2);
  builder.op(KVB_OP_LAYER_NORM, {x}, {x}, {bits(0)});
  output(x, 2);
  expect_near(run({1001, 1003}, 2), {-1, 1});
}

TEST_F(OptionalOps, Activations) {
  const std::vector<float> xs = {-3, -0.5f, 0, 1, 4};
  const auto expected = [&](auto function) {
    std::vector<double> ys;
    for (const double x : xs) ys.push_back(function(x));
    return ys;
  };
  const double root = std::sqrt(2 / 3.14159265358979323846);
  const std::vector<std::pair<uint32_t, std::vector<double>>> cases = {
      {KVB_ACT_SILU, expected([](double x) { return x / (1 + std::exp(-x)); })},
      {KVB_ACT_GELU, expected([](double x) { return x * std::erfc(-x / std::sqrt(2)) / 2; })},
      {KVB_ACT_GELU_TANH,
       expected([&](double x) { return x / 2 * (1 + std::tanh(root * (x + 0.044715 * std::pow(x, 3)))); })},
      {KVB_ACT_RELU, expected([](double x) { return x > 0 ? x : 0; })},
  };
  for (const auto& [activation, ys] : cases) {
    builder = ProgramBuilder();
    const uint32_t x = input(5);
    builder.op(KVB_OP_ACTIVATION, {x}, {x}, {activation});
    output(x, 5);
    expect_near(run(xs, 5), ys);
  }
}

TEST_F(OptionalOps, ReluKeepsNan) {
  const uint32_t x = input(1);
  builder.op(KVB_OP_ACTIVATION, {x}, {x}, {KVB_ACT_RELU});
  output(x, 1);
  EXPECT_TRUE(std::isnan(run({std::nanf("")}, 1)[0]));
}

TEST_F(OptionalOps, ScaleAndSoftcap) {
  const uint32_t x = input(2);
  builder.op(KVB_OP_SCALE, {x}, {x}, {bits(3)});
  builder.op(KVB_OP_SOFTCAP, {x}, {x}, {bits(30)});
  output(x, 2);
  expect_near(run({10, -1000}, 2), {30 * std::tanh(1.0), -30}, 1e-5);
}

TEST_F(OptionalOps, CopyHeadsSplitsAndJoins) {
  const uint32_t x = input(6);  // 2 heads of 3
  const uint32_t part = builder.tokens(2);
  const uint32_t joined = builder.tokens(4);
  builder.op(KVB_OP_COPY_HEADS, {x}, {part}, {2, 2, 0, 1, 2});            // third element of each head
  builder.op(KVB_OP_COPY_HEADS, {part}, {joined}, {2, 0, 1, 1, 2});       // to the second of 2, zeros elsewhere
  builder.op(KVB_OP_COPY_HEADS, {x, joined}, {joined}, {2, 4, 0, 1, 1});  // x as one head of 6: element 4 to both
  output(joined, 4);
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6}, 6), (std::vector<float>{5, 3, 5, 6}));
}

TEST_F(OptionalOps, HeadLinear) {
  const uint32_t x = input(4);  // 2 heads of 2
  const uint32_t y = builder.tokens(6);
  const uint32_t w = builder.weight(f32_tensor(3, 2, {1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 2, 2}, 2));
  builder.op(KVB_OP_HEAD_LINEAR, {x, w}, {y}, {2});
  output(y, 6);
  EXPECT_EQ(run({1, 2, 3, 4, 0, 0, 1, 0}, 4), (std::vector<float>{1, 2, 3, 6, 8, 14, 0, 0, 0, 2, 0, 2}));
}

// The k largest values of each row in falling order, then the ids of all rows.
TEST_F(OptionalOps, TopK) {
  const uint32_t x = input(5);
  const uint32_t picked = builder.selected(5);
  builder.op(KVB_OP_SELECT_ROWS, {x}, {picked});
  builder.op(KVB_OP_TOP_K, {picked}, {builder.output(3), builder.ids(3, KVB_ROWS_OUTPUTS)}, {3});
  const float nan = std::nanf("");
  const std::vector<float> result = run({2, 7, 7, -1, 5, nan, 1, nan, nan, nan}, 5);
  EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + 3), (std::vector<float>{7, 7, 5}));
  EXPECT_EQ(result[3], 1);
  EXPECT_TRUE(std::isnan(result[4]) && std::isnan(result[5]));
  std::vector<int32_t> ids;
  for (size_t i = 6; i < result.size(); ++i) ids.push_back(std::bit_cast<int32_t>(result[i]));
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2, 4, 1, 0, 0}));
}

}  // namespace
}  // namespace kvasir::testing
