// SPDX-License-Identifier: MIT
//
// ATTENTION with everything it may have, against a formula over whole matrices; its trace; its window at the edges.
#include <cmath>
#include <random>

#include "ref_fixture.h"

namespace kvasir::testing {
namespace {

struct Case {
  uint32_t heads = 2, kv_heads = 1, k_dim = 4, v_dim = 4, window = 0, page_tokens = 2;
  float scale = 0.5f, softcap = 0;
  std::vector<float> sinks = {}, slopes = {};
  bool latent = false;
};

constexpr uint32_t kTokens = 7;

std::vector<float> identity_rows(uint32_t rows, uint32_t width, uint32_t first) {
  std::vector<float> matrix(size_t{rows} * width);
  for (uint32_t i = 0; i < rows; ++i) matrix[size_t{i} * width + first + i] = 1;
  return matrix;
}

class Attention : public RefTest {
 protected:
  // Each row of input is q, k, v side by side.
  static uint32_t width(const Case& c) { return c.heads * c.k_dim + c.kv_heads * (c.k_dim + c.v_dim); }

  static CacheSpec spec(const Case& c) {
    const uint32_t flags = c.latent ? uint32_t{KVB_CACHE_LATENT} : 0;
    return one_group(1, {KV_TYPE_F32, KV_TYPE_F32, c.kv_heads, c.k_dim, c.v_dim, c.window, c.page_tokens, flags});
  }

  static ProgramBuilder build(const Case& c) {
    ProgramBuilder builder;
    const uint32_t n = width(c), q_width = c.heads * c.k_dim, k_width = c.kv_heads * c.k_dim,
                   v_width = c.kv_heads * c.v_dim;
    const uint32_t x = builder.tokens(n), q = builder.tokens(q_width), k = builder.tokens(k_width);
    const uint32_t v = builder.tokens(v_width), y = builder.tokens(c.heads * c.v_dim);
    builder.op(KVB_OP_EMBED, {}, {x});
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(q_width, n, identity_rows(q_width, n, 0))}, {q});
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(k_width, n, identity_rows(k_width, n, q_width))}, {k});
    builder.op(KVB_OP_LINEAR, {x, builder.matrix(v_width, n, identity_rows(v_width, n, q_width + k_width))}, {v});
    builder.op(KVB_OP_KV_STORE, {k, c.latent ? KVB_NONE : v}, {}, {0});
    const uint32_t sinks = c.sinks.empty() ? KVB_NONE : builder.vector(c.sinks);
    const uint32_t slopes = c.slopes.empty() ? KVB_NONE : builder.vector(c.slopes);
    builder.op(KVB_OP_ATTENTION, {q, sinks, slopes}, {y}, {0, c.heads, bits(c.scale), bits(c.softcap)});
    builder.op(KVB_OP_SELECT_ROWS, {y}, {builder.output(c.heads * c.v_dim)});
    return builder;
  }

  static std::vector<float> random_rows(const Case& c) {
    std::mt19937 random(1);
    std::normal_distribution<float> value;
    std::vector<float> rows(size_t{kTokens} * width(c));
    for (float& element : rows) element = value(random);
    return rows;
  }

  static std::vector<double> formula(const Case& c, const std::vector<float>& rows) {
    std::vector<double> result;
    for (uint32_t t = 0; t < kTokens; ++t) {
      for (uint32_t h = 0; h < c.heads; ++h) {
        const uint32_t g = h * c.kv_heads / c.heads;
        const auto at = [&](uint32_t row, uint32_t column) { return double{rows[size_t{row} * width(c) + column]}; };
        const uint32_t k0 = c.heads * c.k_dim + g * c.k_dim;
        const uint32_t v0 = c.latent ? k0 : c.heads * c.k_dim + c.kv_heads * c.k_dim + g * c.v_dim;
        std::vector<double> sums(c.v_dim);
        double total = c.sinks.empty() ? 0 : std::exp(c.sinks[h]);
        for (uint32_t j = 0; j <= t; ++j) {
          if (c.window != 0 && t - j >= c.window) continue;
          double s = 0;
          for (uint32_t i = 0; i < c.k_dim; ++i) s += at(t, h * c.k_dim + i) * at(j, k0 + i);
          s *= c.scale;
          if (c.softcap != 0) s = c.softcap * std::tanh(s / c.softcap);
          if (!c.slopes.empty()) s -= double{c.slopes[h]} * (t - j);
          total += std::exp(s);
          for (uint32_t i = 0; i < c.v_dim; ++i) sums[i] += std::exp(s) * at(j, v0 + i);
        }
        for (const double sum : sums) result.push_back(sum / total);
      }
    }
    return result;
  }

  void check(const Case& c) {
    const std::vector<float> rows = random_rows(c);
    expect_near(run_rows(build(c), spec(c), rows, width(c)), formula(c, rows));
  }
};

TEST_F(Attention, Plain) { check({}); }
TEST_F(Attention, GroupedHeadsOfOddSizes) { check({.heads = 6, .kv_heads = 3, .k_dim = 5, .v_dim = 3}); }
TEST_F(Attention, OneHeadEach) { check({.heads = 4, .kv_heads = 4}); }
TEST_F(Attention, WindowOfThree) { check({.window = 3}); }
TEST_F(Attention, WindowOfOne) { check({.window = 1, .page_tokens = 1}); }
TEST_F(Attention, WindowLongerThanTheSequence) { check({.window = 100}); }
TEST_F(Attention, SoftCap) { check({.scale = 2, .softcap = 1.5f}); }
TEST_F(Attention, Sinks) { check({.sinks = {0.5f, -2}}); }
TEST_F(Attention, Slopes) { check({.slopes = {0.25f, 0.0625f}}); }
TEST_F(Attention, Latent) { check({.k_dim = 6, .v_dim = 4, .latent = true}); }
TEST_F(Attention, Everything) {
  check({.heads = 4, .kv_heads = 2, .window = 4, .softcap = 3, .sinks = {0, 1, 2, 3}, .slopes = {0.5f, 0.25f, 0, 1}});
}

TEST_F(Attention, LargeScoresDoNotOverflow) {
  const Case c{.heads = 1, .k_dim = 1, .v_dim = 1, .scale = 1};
  // Scores of the second token: 1e6 for the first position, -1e6 for its own.
  expect_near(run_rows(build(c), spec(c), {0, 1000, 7, 1000, -1000, 9}, 3), {7, 7});
}

// The first three-token example, with the rows of its softmax read from a traced program.
// KVB-21.
TEST_F(Attention, TracedRowsAndSameBits) {
  Case c{.heads = 1, .k_dim = 2, .v_dim = 2, .window = 2, .scale = 1};
  const std::vector<float> rows = {1, 0, 1, 1, 2, 0, 0, 1, 0, 1, 0, 2, 1, 1, 1, 2, 2, 2};
  const std::vector<float> plain = run_rows(build(c), spec(c), rows, 6);

  struct Row {
    uint32_t what, op, token, first;
    std::vector<float> data;
  };
  std::vector<Row> seen;
  ProgramBuilder builder = build(c);
  builder.flags = KVB_PROGRAM_TRACE;
  const TestProgram program(device, builder, spec(c));
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec(c), {2});
  TestSequence sequence{0, {{1, 0}}};
  StepData step;
  std::vector<int32_t> ids;
  for (uint32_t t = 0; t < 3; ++t) ids.push_back(step.embed({rows.begin() + 6 * t, rows.begin() + 6 * t + 6}));
  step.append(sequence, ids, true);
  step.trace_user = &seen;
  step.trace = [](void* user, const kvb_trace_record* r) {
    static_cast<std::vector<Row>*>(user)->push_back(
        {r->what, r->op, r->token, r->first_position, {r->data, r->data + size_t{r->rows} * r->width}});
  };
  EXPECT_EQ(run_step(device, queue.get(), program, cache.get(), step), plain);

  std::vector<std::vector<float>> scores, weights;
  uint32_t values = 0;
  for (const Row& row : seen) {
    if (row.what == KVB_TRACE_VALUE) ++values;
    if (row.what == KVB_TRACE_SCORES) scores.push_back(row.data);
    if (row.what == KVB_TRACE_WEIGHTS) weights.push_back(row.data);
    if (row.what != KVB_TRACE_VALUE) {
      EXPECT_EQ(row.first, row.token == 2 ? 1u : 0u);
    }
  }
  EXPECT_EQ(values, 6u);  // seven ops, of which KV_STORE has no output
  EXPECT_EQ(scores, (std::vector<std::vector<float>>{{1}, {1, 1}, {1, 3}}));
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights[1], (std::vector<float>{0.5f, 0.5f}));
  EXPECT_FLOAT_EQ(weights[2][1], static_cast<float>(1 / (1 + std::exp(-2.0))));
  EXPECT_EQ(seen[1].data, (std::vector<float>{1, 0, 0, 1, 1, 1}));  // q of all three tokens
}

}  // namespace
}  // namespace kvasir::testing
