// SPDX-License-Identifier: MIT
//
// Programs on which a wrong decision about shared stages, shared bytes or kept operand rows would show: the cpu backend
// against ref, and against itself traced (op by op).
#include <gtest/gtest.h>

#include "random_model.h"

namespace kvasir::testing {
namespace {

constexpr uint32_t kWidth = 32, kTokens = 9;

// What a program without a cache gives for random rows.
std::vector<float> run_on(const char* backend, ProgramBuilder builder, bool traced = false) {
  builder.flags = traced ? uint32_t{KVB_PROGRAM_TRACE} : 0;
  TestHost host;
  const TestDevice device(query_of(backend), host);
  const Owned<kvb_queue> queue = device.queue();
  const CacheSpec spec{};
  const TestProgram program(device, builder, spec);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {});
  RandomWeights random(77);
  StepData step;
  std::vector<int32_t> ids;
  for (uint32_t t = 0; t < kTokens; t++) ids.push_back(step.embed(random.vector(kWidth, 0, 1)));
  TestSequence sequence;
  step.append(sequence, ids, true);
  return run_step(device, queue.get(), program, cache.get(), step);
}

void expect_right(const ProgramBuilder& builder, float tolerance) {
  const std::vector<float> got = run_on("cpu", builder), want = run_on("ref", builder);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], tolerance) << "element " << i;
  EXPECT_TRUE(same_bits(run_on("cpu", builder, true), got));
}

struct Small : ProgramBuilder {
  explicit Small(uint32_t mode = KV_COMPUTE_EXACT) : ProgramBuilder(Limits{16, 16, 1, 16}) {
    compute_mode = mode;
    x = tokens(kWidth);
    op(KVB_OP_EMBED, {}, {x});
  }
  uint32_t linear(uint32_t in, uint32_t type, uint16_t group = 0) {
    const uint32_t y = tokens(kWidth);
    op(KVB_OP_LINEAR, {in, weight(random.matrix(type, kWidth, kWidth))}, {y}).group = group;
    return y;
  }
  void finish(uint32_t value) { op(KVB_OP_SELECT_ROWS, {value}, {output(kWidth)}); }

  RandomWeights random{3};
  uint32_t x;
};

TEST(Lowering, ChangedRowsArePreparedAgain) {
  for (const uint32_t type : {KV_TYPE_Q8_0, KV_TYPE_BF16}) {
    Small b(KV_COMPUTE_FAST);
    const uint32_t a = b.linear(b.x, type);
    b.op(KVB_OP_SCALE, {b.x}, {b.x}, {bits(-3.0f)});
    const uint32_t c = b.linear(b.x, type);
    b.op(KVB_OP_ADD, {a, c}, {a});
    b.finish(a);
    expect_right(b, 0.3f);
  }
}

TEST(Lowering, TwoOperandTypesOfOneRow) {
  Small b(KV_COMPUTE_FAST);
  uint32_t sum = b.linear(b.x, KV_TYPE_Q8_0);
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_BF16, KV_TYPE_Q4_0, KV_TYPE_F16})
    b.op(KVB_OP_ADD, {sum, b.linear(b.x, type)}, {sum});
  b.finish(sum);
  expect_right(b, 0.3f);
}

// The sum takes the place of the rows the product reads, of the residual, or of neither; or the product is read again.
TEST(Lowering, AddBehindAProduct) {
  for (const int into : {0, 1, 2, 3}) {
    for (const bool swapped : {false, true}) {
      Small b;
      const uint32_t r = b.tokens(kWidth), fresh = b.tokens(kWidth);
      b.op(KVB_OP_SCALE, {b.x}, {r}, {bits(0.5f)});
      const uint32_t y = b.linear(b.x, KV_TYPE_F32, KVB_GROUP_DOWN);
      b.ops.back().flags = KVB_OP_FLAG_GROUP_BEGIN;
      const uint32_t out = into == 0 ? b.x : into == 1 ? r : into == 2 ? y : fresh;
      (swapped ? b.op(KVB_OP_ADD, {r, y}, {out}) : b.op(KVB_OP_ADD, {y, r}, {out})).group = KVB_GROUP_DOWN;
      if (into == 3) b.op(KVB_OP_ADD, {fresh, y}, {fresh});
      b.finish(out);
      SCOPED_TRACE(into);
      expect_right(b, 1e-5f);
    }
  }
}

// Rows of another width in the same bytes: an op may not run ahead on some rows while others still wait.
TEST(Lowering, RowsOfAnotherWidthInTheSameBytes) {
  ProgramBuilder b(Limits{16, 16, 1, 16});
  const uint32_t x = b.tokens(kWidth), half = b.tokens(kWidth / 2), y = b.tokens(kWidth / 2);
  b.op(KVB_OP_EMBED, {}, {x});
  b.op(KVB_OP_GLU, {x}, {half}, {KVB_ACT_SILU});
  b.op(KVB_OP_SCALE, {half}, {y}, {bits(2.0f)});
  b.values[y].place = b.values[x].place + 4 * kWidth * sizeof(float);  // x, from row 4 on, is not needed any more
  b.op(KVB_OP_SELECT_ROWS, {y}, {b.output(kWidth / 2)});
  expect_right(b, 1e-5f);
}

TEST(Lowering, PlannedScratchGivesTheSameBits) {
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_Q8_0, KV_TYPE_BF16}) {
    ModelShape shape;
    shape.weight_type = type;
    shape.compute_mode = KV_COMPUTE_FAST;
    const auto tokens = random_tokens(33, shape.vocab, 4);
    Rig apart(shape);
    shape.shared_scratch = true;
    Rig shared(shape);
    EXPECT_TRUE(same_bits(shared.run(0, tokens, true), apart.run(0, tokens, true))) << sdk::type_name(type);
  }
}

}  // namespace
}  // namespace kvasir::testing
