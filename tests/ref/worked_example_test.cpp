// SPDX-License-Identifier: MIT
//
// The first worked example: three tokens, d = 2, Wq = I, Wk = [[1,1],[0,1]], Wv = 2I (acting as x W), no output
// projection, norm, residual or FFN. Run through the ABI, in one prefill and token by token.
#include <cmath>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

class WorkedExample : public RefTest {
 protected:
  static ProgramBuilder build(float scale) {
    ProgramBuilder builder;
    const uint32_t x = builder.tokens(2), q = builder.tokens(2), k = builder.tokens(2), v = builder.tokens(2);
    const uint32_t y = builder.tokens(2);
    builder.op(KVB_OP_EMBED, {}, {x});
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(2, 2, {1, 0, 0, 1})}, {q});
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(2, 2, {1, 0, 1, 1})}, {k});  // the transpose: W is [out, in]
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(2, 2, {2, 0, 0, 2})}, {v});
    builder.op(KVB_OP_KV_STORE, {k, v}, {}, {0});
    builder.op(KVB_OP_ATTENTION, {q}, {y}, {0, 1, bits(scale), 0});
    builder.op(KVB_OP_SELECT_ROWS, {y}, {builder.output(2)});
    return builder;
  }

  static CacheSpec spec() { return one_group(1, {KV_TYPE_F32, KV_TYPE_F32, 1, 2, 2, 0, 4, 0}); }

  // Feeds the three tokens in steps of the given sizes; all output rows in order.
  std::vector<float> run(float scale, const std::vector<uint32_t>& chunks, Owned<kvb_cache>* kept = nullptr) {
    const TestProgram program(device, build(scale), spec());
    Owned<kvb_cache> cache = make_cache(device, queue.get(), spec(), {1});
    TestSequence sequence{0, {{0}}};
    std::vector<float> result;
    for (const uint32_t count : chunks) {
      StepData step;
      std::vector<int32_t> ids;
      for (uint32_t i = 0; i < count; ++i) ids.push_back(step.embed(kTokens[sequence.length + i]));
      step.append(sequence, ids, true);
      const std::vector<float> rows = run_step(device, queue.get(), program, cache.get(), step);
      result.insert(result.end(), rows.begin(), rows.end());
    }
    if (kept != nullptr) *kept = std::move(cache);
    return result;
  }

  const std::vector<float> kTokens[3] = {{1, 0}, {0, 1}, {1, 1}};
};

TEST_F(WorkedExample, OutputsAndRows) {
  Owned<kvb_cache> cache;
  expect_near(run(1, {3}, &cache), {2, 0, 1, 1, 1.8199, 1.5105}, 5e-5);
  EXPECT_EQ(read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_K, 0, 0, 3, 2),
            (std::vector<float>{1, 1, 0, 1, 1, 2}));
  EXPECT_EQ(read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_V, 0, 0, 3, 2),
            (std::vector<float>{2, 0, 0, 2, 2, 2}));
  // The last output in full: weights of scores 2, 1, 3.
  const double e2 = std::exp(-1), e1 = std::exp(-2), sum = 1 + e1 + e2;
  expect_near(run(1, {3}), {2, 0, 1, 1, 2 * (e2 + 1) / sum, 2 * (e1 + 1) / sum});
}

TEST_F(WorkedExample, ScaledByTheRootOfTheHead) {
  const std::vector<float> result = run(1 / std::sqrt(2.0f), {3});
  expect_near({result[4], result[5]}, {1.7199, 1.4320}, 5e-5);
}

TEST_F(WorkedExample, CachedEqualsRecomputed) {
  const std::vector<float> at_once = run(1, {3});
  EXPECT_EQ(run(1, {1, 1, 1}), at_once);
  EXPECT_EQ(run(1, {2, 1}), at_once);
  EXPECT_EQ(run(1, {1, 2}), at_once);
}

}  // namespace
}  // namespace kvasir::testing
