// SPDX-License-Identifier: MIT
//
// The mandatory ops but attention, on numbers small enough to check by hand.
#include <cmath>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

class Ops : public RefTest {
 protected:
  // A program whose rows come as embeddings of `width` and whose last value, selected, goes out.
  uint32_t input(uint32_t width) {
    const uint32_t x = builder.tokens(width);
    builder.op(KVB_OP_EMBED, {}, {x});
    return x;
  }
  void output(uint32_t x, uint32_t width) { builder.op(KVB_OP_SELECT_ROWS, {x}, {builder.output(width)}); }
  std::vector<float> run(const std::vector<float>& rows, uint32_t width) { return run_rows(builder, {}, rows, width); }

  ProgramBuilder builder;
};

TEST_F(Ops, EmbedMixesIdsAndRows) {
  const uint32_t table = builder.matrix(3, 2, {1, 2, 3, 4, 5, 6});
  const uint32_t places = builder.matrix(4, 2, {0.5f, 0, 0, 0.5f, 0.25f, 0.25f, 7, 7});
  const uint32_t x = builder.tokens(2);
  builder.op(KVB_OP_EMBED, {table, places}, {x}, {bits(10)});
  output(x, 2);
  const TestProgram program(device, builder, {});
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), {}, {});
  StepData step;
  TestSequence sequence;
  step.append(sequence, {2, step.embed({-1, -2}), 0}, true);
  EXPECT_EQ(run_step(device, queue.get(), program, cache.get(), step),
            (std::vector<float>{50.5f, 60, -1, -1.5f, 10.25f, 20.25f}));
}

TEST_F(Ops, EmbedScaleZeroMeansOne) {
  const uint32_t x = builder.tokens(1);
  builder.op(KVB_OP_EMBED, {builder.matrix(2, 1, {3, 4})}, {x});
  output(x, 1);
  const TestProgram program(device, builder, {});
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), {}, {});
  StepData step;
  TestSequence sequence;
  step.append(sequence, {1});
  EXPECT_EQ(run_step(device, queue.get(), program, cache.get(), step), std::vector<float>{4});
}

TEST_F(Ops, RmsNorm) {
  const uint32_t x = input(4);
  const uint32_t y = builder.tokens(4);
  builder.op(KVB_OP_RMS_NORM, {x, builder.vector({1, 2, 3, 4})}, {y}, {bits(0.5f)});
  output(y, 4);
  // mean square of (1, -1, 2, 1) is 7/4; with eps 9/4, whose root is 3/2
  expect_near(run({1, -1, 2, 1}, 4), {1 / 1.5, -2 / 1.5, 6 / 1.5, 4 / 1.5});
}

TEST_F(Ops, RmsNormPerHeadInPlaceWithoutWeight) {
  const uint32_t x = input(4);
  builder.op(KVB_OP_RMS_NORM, {x}, {x}, {bits(0), 2});
  output(x, 4);
  expect_near(run({3, 4, 0, -5, 1, 1, 2, 0}, 4),
              {3 / std::sqrt(12.5), 4 / std::sqrt(12.5), 0, -std::sqrt(2), 1, 1, std::sqrt(2), 0});
}

TEST_F(Ops, RmsNormPerHeadWeight) {
  const uint32_t x = input(4);
  builder.op(KVB_OP_RMS_NORM, {x, builder.vector({1, 10})}, {x}, {bits(0), 2});
  output(x, 4);
  expect_near(run({1, 1, -2, 2}, 4), {1, 10, -1, 10});
}

TEST_F(Ops, LinearWithBiasAndView) {
  const uint32_t x = input(3);
  const uint32_t y = builder.tokens(2);
  const uint32_t w = builder.matrix(4, 3, {9, 9, 9, 1, 2, 3, -1, 0, 1, 9, 9, 9});
  builder.op(KVB_OP_LINEAR, {x, w, builder.vector({0, 100, 200, 0})}, {y}, {1});
  output(y, 2);
  EXPECT_EQ(run({1, 1, 1, 0, 2, -2}, 3), (std::vector<float>{106, 200, 98, 198}));
}

TEST_F(Ops, LinearAddsTheBiasAfterRounding) {
  const uint32_t x = input(2);
  const uint32_t y = builder.tokens(1);
  // 2^24 + 1 rounds to 2^24 before -2^24 is added.
  builder.op(KVB_OP_LINEAR, {x, builder.matrix(1, 2, {16777216, 1}), builder.vector({-16777216})}, {y});
  output(y, 1);
  EXPECT_EQ(run({1, 1}, 2), std::vector<float>{0});
}

// KVB-19
TEST_F(Ops, LinearSumsInDouble) {
  const uint32_t x = input(3);
  const uint32_t y = builder.tokens(1);
  builder.op(KVB_OP_LINEAR, {x, builder.matrix(1, 3, {16777216, 1, -16777216})}, {y});
  output(y, 1);
  EXPECT_EQ(run({1, 1, 1}, 3), std::vector<float>{1});
}

TEST_F(Ops, RopeAdjacentPairs) {
  const uint32_t x = input(8);  // 2 heads of 4
  const uint32_t y = builder.tokens(8);
  const uint32_t rope = builder.rope(KVB_ROPE_ADJACENT, 0, 1, {1.0, 0.25});
  builder.op(KVB_OP_ROPE, {x}, {y}, {2, 4, rope});
  output(y, 8);
  const std::vector<float> row = {1, 0, 0, 1, 2, 3, 4, 5};
  std::vector<float> rows = row;
  rows.insert(rows.end(), row.begin(), row.end());  // positions 0 and 1
  const double c = std::cos(1), s = std::sin(1), c4 = std::cos(0.25), s4 = std::sin(0.25);
  expect_near(run(rows, 8), {1, 0, 0, 1, 2, 3, 4, 5,  //
                             c, s, -s4, c4, 2 * c - 3 * s, 2 * s + 3 * c, 4 * c4 - 5 * s4, 4 * s4 + 5 * c4});
}

TEST_F(Ops, RopeHalvesPartialWithMagnitude) {
  const uint32_t x = input(6);  // one head; elements 1, 3 and 2, 4 are pairs, 0 and 5 stay
  const uint32_t rope = builder.rope(KVB_ROPE_HALVES, 1, 2, {1.0, 0.5});
  builder.op(KVB_OP_ROPE, {x}, {x}, {1, 6, rope});
  output(x, 6);
  const double c = 2 * std::cos(1), s = 2 * std::sin(1), c2 = 2 * std::cos(0.5), s2 = 2 * std::sin(0.5);
  expect_near(run({0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 8}, 6),
              {0, 0, 0, 0, 0, 0, 7, c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2, 8});
}

TEST_F(Ops, GluBothForms) {
  const uint32_t x = input(4);
  const uint32_t y = builder.tokens(2);
  builder.op(KVB_OP_GLU, {x}, {y}, {KVB_ACT_SILU});
  output(y, 2);
  expect_near(run({1, -2, 10, 20}, 4), {10 / (1 + std::exp(-1)), -40 / (1 + std::exp(2))}, 1e-5);
}

TEST_F(Ops, GluOfTwoValuesInPlace) {
  const uint32_t x = input(2);
  const uint32_t gate = builder.tokens(2);
  builder.op(KVB_OP_LINEAR, {x, builder.matrix(2, 2, {-1, 0, 0, 1})}, {gate});
  builder.op(KVB_OP_GLU, {gate, x}, {gate}, {KVB_ACT_RELU});
  output(gate, 2);
  EXPECT_EQ(run({3, 4}, 2), (std::vector<float>{0, 16}));
}

TEST_F(Ops, AddInPlaceAndToItself) {
  const uint32_t x = input(2);
  builder.op(KVB_OP_ADD, {x, x}, {x});
  output(x, 2);
  EXPECT_EQ(run({3, 4}, 2), (std::vector<float>{6, 8}));
}

TEST_F(Ops, SelectRowsTakesThoseAsked) {
  const uint32_t x = input(1);
  output(x, 1);
  const TestProgram program(device, builder, {});
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), {}, {});
  StepData step;
  TestSequence sequence;
  step.append(sequence, {step.embed({1}), step.embed({2}), step.embed({3}), step.embed({4})}, true);
  step.output_rows = {1, 3};
  EXPECT_EQ(run_step(device, queue.get(), program, cache.get(), step), (std::vector<float>{2, 4}));
  step.output_rows = {};
  EXPECT_TRUE(run_step(device, queue.get(), program, cache.get(), step).empty());
}

TEST_F(Ops, NanStaysInItsRow) {
  const uint32_t x = input(2);
  const uint32_t y = builder.tokens(2);
  builder.op(KVB_OP_LINEAR, {x, builder.matrix(2, 2, {0, 1, 1, 0})}, {y});
  output(y, 2);
  const std::vector<float> result = run({std::nanf(""), 1, 2, 3}, 2);
  EXPECT_TRUE(std::isnan(result[0]));  // 0 x NaN is NaN
  EXPECT_TRUE(std::isnan(result[1]));
  EXPECT_EQ(result[2], 3);
  EXPECT_EQ(result[3], 2);
}

}  // namespace
}  // namespace kvasir::testing
