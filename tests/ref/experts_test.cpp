// SPDX-License-Identifier: MIT
//
// Experts: routing, a matrix per expert, the weighted sum, together and apart.
#include <cmath>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

class Experts : public RefTest {
 protected:
  // Routes the rows, which are the scores, and gives the chosen weights out.
  std::vector<float> route(const std::vector<float>& scores, uint32_t experts, uint32_t used, uint32_t scoring,
                           float factor = 1, const std::vector<float>& bias = {}, uint32_t groups = 0) {
    ProgramBuilder builder;
    const uint32_t x = builder.tokens(experts);
    const uint32_t weights = builder.tokens(used);
    builder.op(KVB_OP_EMBED, {}, {x});
    const uint32_t b = bias.empty() ? KVB_NONE : builder.vector(bias);
    builder.op(KVB_OP_MOE_ROUTE, {x, b}, {weights, builder.ids(used)}, {experts, used, scoring, bits(factor), groups});
    builder.op(KVB_OP_SELECT_ROWS, {weights}, {builder.output(used)});
    return run_rows(builder, {}, scores, experts);
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(Experts, SoftmaxWeights) {
  const double sum = std::exp(1) + std::exp(3) + std::exp(2);
  expect_near(route({1, 3, 2}, 3, 2, KVB_ROUTE_SOFTMAX), {std::exp(3) / sum, std::exp(2) / sum});
  expect_near(route({1, 3, 2}, 3, 2, KVB_ROUTE_SOFTMAX_NORMALIZED, 2), {2 * sigmoid(1), 2 * sigmoid(-1)});
}

TEST_F(Experts, SigmoidWeightsWithBias) {
  // The bias lifts expert 0 over expert 1; the weights do not see it.
  expect_near(route({0, 1, 2}, 3, 2, KVB_ROUTE_SIGMOID, 1, {0.5f, 0, 0}), {sigmoid(0), sigmoid(2)});
  const double sum = sigmoid(0) + sigmoid(2);
  expect_near(route({0, 1, 2}, 3, 2, KVB_ROUTE_SIGMOID_NORMALIZED, 1, {0.5f, 0, 0}),
              {sigmoid(0) / sum, sigmoid(2) / sum});
}

TEST_F(Experts, NanScoresGiveNanWeights) {
  const float nan = std::nanf("");
  for (const float weight : route({nan, 1, 2, nan, nan, nan}, 3, 2, KVB_ROUTE_SOFTMAX)) EXPECT_TRUE(std::isnan(weight));
  for (const float weight : route({nan, nan}, 2, 1, KVB_ROUTE_SIGMOID)) EXPECT_TRUE(std::isnan(weight));
}

// Each expert e multiplies by e + 1 and adds 10 e; ties go to the lower id.
TEST_F(Experts, WholeBlock) {
  ProgramBuilder builder;
  const uint32_t x = builder.tokens(3);
  const uint32_t weights = builder.tokens(2);
  const uint32_t ids = builder.ids(2);
  const uint32_t first = builder.tokens(1, 2);
  const uint32_t second = builder.tokens(1, 2);
  const uint32_t y = builder.tokens(1);
  builder.op(KVB_OP_EMBED, {}, {x});
  builder.op(KVB_OP_MOE_ROUTE, {x}, {weights, ids}, {3, 2, KVB_ROUTE_SOFTMAX_NORMALIZED, bits(1)});
  const uint32_t w = builder.weight(f32_tensor(1, 3, {1, 1, 1, 2, 2, 2, 3, 3, 3}, 3));
  const uint32_t bias = builder.matrix(3, 1, {0, 10, 20});
  builder.op(KVB_OP_MOE_LINEAR, {x, w, bias, ids}, {first});
  const uint32_t twice = builder.weight(f32_tensor(1, 1, {1, -1, 1}, 3));
  builder.op(KVB_OP_MOE_LINEAR, {first, twice, KVB_NONE, ids}, {second});  // one row per expert used
  builder.op(KVB_OP_MOE_SUM, {second, weights}, {y});
  builder.op(KVB_OP_SELECT_ROWS, {y}, {builder.output(1)});
  const std::vector<float> result = run_rows(builder, {}, {0, 5, 5, 4, 4, 4}, 3);
  // Row 0: experts 1 (20 + 10, negated) and 2 (30 + 20); row 1: experts 0 (12) and 1 (24 + 10, negated).
  expect_near(result, {0.5 * -30 + 0.5 * 50, 0.5 * 12 + 0.5 * -34});
}

// Groups are judged by their two best experts: {0, 1} has the best one, {2, 3} the best two.
TEST_F(Experts, OnlyOfTheBestGroups) {
  const std::vector<float> scores = {3, -4, 1, 0.5f};
  expect_near(route(scores, 4, 2, KVB_ROUTE_SIGMOID), {sigmoid(3), sigmoid(1)});
  expect_near(route(scores, 4, 2, KVB_ROUTE_SIGMOID, 1, {}, 2 | 1u << 16), {sigmoid(1), sigmoid(0.5)});
  expect_near(route(scores, 4, 2, KVB_ROUTE_SIGMOID, 1, {}, 2 | 2u << 16), {sigmoid(3), sigmoid(1)});
  // Of equal groups the first; the bias counts.
  expect_near(route({1, 0, 1, 0}, 4, 1, KVB_ROUTE_SIGMOID, 1, {0, 0, 0, 0.25f}, 2 | 1u << 16), {sigmoid(0)});
  expect_near(route({1, 2, 1, 2}, 4, 2, KVB_ROUTE_SIGMOID, 1, {}, 2 | 1u << 16), {sigmoid(2), sigmoid(1)});
}

}  // namespace
}  // namespace kvasir::testing
