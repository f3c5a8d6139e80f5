// SPDX-License-Identifier: MIT
//
// From configuration to program: the ops of a model in order, groups, the scratch plan, rotary tables.
#include <gtest/gtest.h>

#include <cmath>

#include "arch/arch.h"
#include "program/plan.h"
#include "program/print.h"
#include "program/rope.h"
#include "support/random_model.h"

namespace kvasir {
namespace {

// Tensors of a configuration as a source.
std::shared_ptr<const WeightSource> source(const ModelConfig& config, bool biases = false) {
  WeightsBuilder builder;
  for (const testing::RandomTensor& t : testing::random_tensors(config, KV_TYPE_F32, 1, biases)) {
    EXPECT_TRUE(builder.add(t.info, t.data.data(), t.data.size(), MemoryOwnership::copy).ok());
  }
  std::shared_ptr<const WeightSource> out;
  EXPECT_TRUE(builder.build(&out).ok());
  return out;
}

TEST(Program, OneLlamaLayerAsTextGolden) {
  ModelConfig config = testing::small_config();
  config.layers = 1;
  Program program;
  ASSERT_TRUE(build_program(config, *source(config), &program).ok());
  EXPECT_EQ(print(program),
            "%0[T,32] = EMBED w0[64,32]\n"
            "-- group 1\n"
            "%3[T,32] = RMS_NORM %0[T,32], w1[1,32]\n"
            "%5[T,32] = LINEAR %3[T,32], w2[32,32]\n"
            "%7[T,16] = LINEAR %3[T,32], w3[16,32]\n"
            "%9[T,16] = LINEAR %3[T,32], w4[16,32]\n"
            "-- group 2\n"
            "%5[T,32] = ROPE %5[T,32]\n"
            "%7[T,16] = ROPE %7[T,16]\n"
            "KV_STORE %7[T,16], %9[T,16]\n"
            "-- group 3\n"
            "%10[T,32] = ATTENTION %5[T,32]\n"
            "%12[T,32] = LINEAR %10[T,32], w5[32,32]\n"
            "%0[T,32] = ADD %0[T,32], %12[T,32]\n"
            "-- group 4\n"
            "%14[T,32] = RMS_NORM %0[T,32], w6[1,32]\n"
            "%16[T,64] = LINEAR %14[T,32], w7[64,32]\n"
            "%18[T,64] = LINEAR %14[T,32], w8[64,32]\n"
            "%16[T,64] = GLU %16[T,64], %18[T,64]\n"
            "-- group 5\n"
            "%20[T,32] = LINEAR %16[T,64], w9[32,64]\n"
            "%0[T,32] = ADD %0[T,32], %20[T,32]\n"
            "-- group 6\n"
            "%21[O,32] = SELECT_ROWS %0[T,32]\n"
            "%23[O,32] = RMS_NORM %21[O,32], w10[1,32]\n"
            "out[O,64] = LINEAR %23[O,32], w11[64,32]\n");
}

TEST(Program, BiasesAreAddedWhereTheyStand) {
  ModelConfig config = testing::small_config();
  config.architecture = "qwen2";
  config.rope.pairing = RopePairing::halves;
  Program plain, biased;
  ASSERT_TRUE(build_program(config, *source(config), &plain).ok());
  ASSERT_TRUE(build_program(config, *source(config, true), &biased).ok());
  EXPECT_GT(biased.weights.size(), plain.weights.size());
  EXPECT_EQ(biased.ops.size(), plain.ops.size());
}

TEST(Program, UnknownFamiliesAreNamed) {
  ModelConfig config = testing::small_config();
  config.architecture = "perceptron";
  Program program;
  const Status status = build_program(config, *source(testing::small_config()), &program);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "the architecture 'perceptron' is not supported");
}

// Values that are alive at the same time never share bytes; the plan is far smaller than all values side by side.
TEST(Program, ScratchNeverOverlapsWhileAlive) {
  const ModelConfig config = testing::small_config();
  Program program;
  ASSERT_TRUE(build_program(config, *source(config), &program).ok());
  for (const uint32_t tokens : {1U, 3U, 512U}) {
    ScratchPlan plan;
    ASSERT_TRUE(plan_scratch(program, tokens, std::min(tokens, 16U), &plan).ok());
    std::vector<std::pair<size_t, size_t>> life(plan.values.size(), {SIZE_MAX, 0});
    const auto touch = [&](uint32_t v, size_t op) {
      if (v == KVB_NONE) return;
      life[v] = {std::min(life[v].first, op), std::max(life[v].second, op)};
    };
    for (size_t i = 0; i < program.ops.size(); i++) {
      for (const uint32_t v : program.ops[i].in) touch(v, i);
      for (const uint32_t v : program.ops[i].out) touch(v, i);
    }
    const auto bytes = [&](const kvb_value& v) {
      return uint64_t{v.rows == KVB_ROWS_TOKENS ? tokens : std::min(tokens, 16U)} * v.width * 4;
    };
    uint64_t all = 0;
    for (size_t a = 0; a < plan.values.size(); a++) {
      if (plan.values[a].kind != KVB_VALUE_SCRATCH) continue;
      all += bytes(plan.values[a]);
      EXPECT_EQ(plan.values[a].place % 64, 0U);
      EXPECT_LE(plan.values[a].place + bytes(plan.values[a]), plan.bytes);
      for (size_t b = 0; b < a; b++) {
        if (plan.values[b].kind != KVB_VALUE_SCRATCH) continue;
        const bool together = life[a].first <= life[b].second && life[b].first <= life[a].second;
        const bool share = plan.values[a].place < plan.values[b].place + bytes(plan.values[b]) &&
                           plan.values[b].place < plan.values[a].place + bytes(plan.values[a]);
        EXPECT_FALSE(together && share) << "values " << a << " and " << b << " at " << tokens << " tokens";
      }
    }
    if (tokens == 512) {
      EXPECT_LT(plan.bytes, all / 2);
    }
  }
}

TEST(Program, RotaryTables) {
  const ModelConfig config = testing::small_config();
  const auto weights = source(config);
  RopeConfig rope = config.rope;
  RopeTable table;
  ASSERT_TRUE(make_rope_table(rope, *weights, &table).ok());
  ASSERT_EQ(table.frequency.size(), 4U);
  EXPECT_DOUBLE_EQ(table.frequency[0], 1.0);
  EXPECT_NEAR(table.frequency[1], 0.1, 1e-12);
  EXPECT_NEAR(table.frequency[3], 0.001, 1e-12);
  EXPECT_EQ(table.magnitude, 1.0F);

  rope.scaling = RopeScaling::linear;
  rope.factor = 4.0F;
  ASSERT_TRUE(make_rope_table(rope, *weights, &table).ok());
  EXPECT_NEAR(table.frequency[1], 0.025, 1e-12);

  // Llama 3: waves longer than the trained length are stretched, short ones kept.
  rope.scaling = RopeScaling::llama3;
  rope.factor = 8.0F;
  rope.original_context = 512;
  ASSERT_TRUE(make_rope_table(rope, *weights, &table).ok());
  EXPECT_NEAR(table.frequency[0], 1.0, 1e-12);          // wave 6.3 < 128
  EXPECT_NEAR(table.frequency[3], 0.001 / 8.0, 1e-12);  // wave 6283 > 512

  // YaRN: magnitude 1 + 0.1 ln factor; the fastest pair is kept, the slowest divided.
  rope.scaling = RopeScaling::yarn;
  ASSERT_TRUE(make_rope_table(rope, *weights, &table).ok());
  EXPECT_NEAR(table.magnitude, 1.0 + 0.1 * std::log(8.0), 1e-6);
  EXPECT_NEAR(table.frequency[3], 0.001 / 8.0, 1e-9);

  rope.factors_tensor = "nothing.weight";
  EXPECT_EQ(make_rope_table(rope, *weights, &table).code(), KV_NOT_FOUND);
}

}  // namespace
}  // namespace kvasir
