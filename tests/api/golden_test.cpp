// SPDX-License-Identifier: MIT
//
// The three worked examples, checked by hand on paper: rows of the cache, scores and weights from the trace, outputs,
// projection counts, and cached against recomputed. On every backend, through the public API only.
#include <cstring>
#include <map>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

const Matrix kIdentity2 = {{1, 0}, {0, 1}};
const Matrix kK1 = {{1, 1}, {0, 1}};
const Matrix kV1 = {{2, 0}, {0, 2}};
const std::vector<float> kX = {1, 0, 0, 1, 1, 1};  // three tokens of two elements

Matrix diagonal(uint32_t n, float x) {
  Matrix m(n, std::vector<float>(n, 0.0F));
  for (uint32_t i = 0; i < n; i++) m[i][i] = x;
  return m;
}

struct Tracer {
  // name or "scores"/"weights" of (layer, position) to values
  std::map<std::string, std::vector<float>> rows;

  static void record(void* user, const kv_trace_record* r) {
    const std::string key = std::to_string(r->layer) + " " + r->name + " " + std::to_string(r->position);
    static_cast<Tracer*>(user)->rows[key] = {r->data, r->data + size_t{r->rows} * r->width};
  }
};

class Golden : public testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();

  ContextPtr context(kv_model* model) {
    kv_context_options options = sized<kv_context_options>();
    options.device = GetParam().c_str();
    options.k_type = options.v_type = KV_TYPE_F32;
    options.max_tokens = 1024;
    return make_context(model, options);
  }

  // Appends rows in one call and returns the output row of each.
  std::vector<float> append(kv_context* context, kv_sequence sequence, const float* rows, uint64_t count) {
    Error e;
    std::vector<float> all;
    kv_step_options options = sized<kv_step_options>();
    options.outputs = KV_OUTPUT_ALL;
    options.row = [](void* user, kv_sequence, uint64_t, const float* row, uint32_t width) {
      auto* out = static_cast<std::vector<float>*>(user);
      out->insert(out->end(), row, row + width);
    };
    options.row_user = &all;
    kv_step_input input = sized<kv_step_input>();
    input.sequence = sequence;
    input.rows = rows;
    input.count = count;
    kv_step_result result = sized<kv_step_result>();
    EXPECT_EQ(kv_step(context, &input, 1, &options, &result, &e), KV_OK) << e.message;
    return all;
  }

  static void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance = 6e-5F) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
  }

  std::vector<float> cached(kv_context* context, uint32_t layer, uint32_t what, uint64_t count, size_t width) {
    Error e;
    std::vector<float> rows(count * width);
    EXPECT_EQ(kv_cache_read(context, KV_DEFAULT_SEQUENCE, layer, what, 0, count, rows.data(), rows.size(), &e), KV_OK)
        << e.message;
    return rows;
  }
};

TEST_P(Golden, ThreeTokens) {
  const ModelPtr model = attention_model(runtime_.get(), 2, 1.0F, {{kIdentity2, kK1, kV1}});
  const ContextPtr c = context(model.get());
  Tracer tracer;
  Error e;
  OK(kv_context_set_trace(c.get(), Tracer::record, &tracer, &e));
  const std::vector<float> outputs = append(c.get(), KV_DEFAULT_SEQUENCE, kX.data(), 3);
  expect_near(cached(c.get(), 0, KV_CACHE_K, 3, 2), {1, 1, 0, 1, 1, 2}, 0.0F);
  expect_near(cached(c.get(), 0, KV_CACHE_V, 3, 2), {2, 0, 0, 2, 2, 2}, 0.0F);
  expect_near(tracer.rows.at("0 scores 2"), {2, 1, 3});
  expect_near({outputs[0], outputs[1]}, {2, 0});
  expect_near({outputs[4], outputs[5]}, {1.8199F, 1.5105F});
  // Token 2 sees scores (1, 1): both halves.
  expect_near({outputs[2], outputs[3]}, {1, 1});
}

TEST_P(Golden, ThreeTokensScaledCachedEqualsRecomputed) {
  const ModelPtr model = attention_model(runtime_.get(), 2, 0.70710678F, {{kIdentity2, kK1, kV1}});
  const ContextPtr c = context(model.get());
  std::vector<float> steps;
  for (int t = 0; t < 3; t++) {
    const std::vector<float> row = append(c.get(), KV_DEFAULT_SEQUENCE, kX.data() + 2 * t, 1);
    steps.insert(steps.end(), row.begin(), row.end());
  }
  expect_near({steps[4], steps[5]}, {1.7199F, 1.4320F});
  // Without the cache: every token's output from a fresh run over all earlier ones, the same bits.
  for (uint64_t n = 1; n <= 3; n++) {
    const ContextPtr fresh = context(model.get());
    const std::vector<float> rows = append(fresh.get(), KV_DEFAULT_SEQUENCE, kX.data(), n);
    EXPECT_EQ(0, std::memcmp(&rows[2 * (n - 1)], &steps[2 * (n - 1)], 2 * sizeof(float))) << n << " tokens";
  }
}

TEST_P(Golden, FourTokens) {
  const ModelPtr model =
      attention_model(runtime_.get(), 4, 0.5F, {{diagonal(4, 0.5F), diagonal(4, 1), diagonal(4, 1)}});
  const ContextPtr c = context(model.get());
  const std::vector<float> x = {1, .5F, .2F, .8F, .3F, 1, .6F, .1F, .7F, .4F, 1, .3F, .5F, .9F, .3F, .6F};
  append(c.get(), KV_DEFAULT_SEQUENCE, x.data(), 3);
  Error e;
  kv_context_info before = sized<kv_context_info>(), after = before;
  OK(kv_context_get_info(c.get(), &before, &e));
  Tracer tracer;
  OK(kv_context_set_trace(c.get(), Tracer::record, &tracer, &e));
  const std::vector<float> output = append(c.get(), KV_DEFAULT_SEQUENCE, x.data() + 12, 1);
  OK(kv_context_get_info(c.get(), &after, &e));
  expect_near(tracer.rows.at("0 scores 3"), {.3725F, .3225F, .2975F, .3775F});
  expect_near(tracer.rows.at("0 weights 3"), {.2575F, .2449F, .2389F, .2588F});
  expect_near(output, {.6275F, .7021F, .5149F, .4574F});
  EXPECT_EQ(after.projections - before.projections, 3U);  // not 12
  EXPECT_EQ(after.projections_avoided - before.projections_avoided, 9U);
}

TEST_P(Golden, ProjectionsAvoided) {
  const ModelPtr model =
      attention_model(runtime_.get(), 4, 0.5F, {{diagonal(4, 0.5F), diagonal(4, 1), diagonal(4, 1)}});
  const ContextPtr c = context(model.get());
  const std::vector<float> rows(4 * 1000, 0.25F);
  Error e;
  for (const auto& [length, avoided] : {std::pair<uint64_t, uint64_t>{4, 9}, {100, 297}, {1000, 2997}}) {
    append(c.get(), KV_DEFAULT_SEQUENCE, rows.data(), length - 1 - length_of(c.get(), KV_DEFAULT_SEQUENCE));
    kv_context_info before = sized<kv_context_info>(), after = before;
    OK(kv_context_get_info(c.get(), &before, &e));
    append(c.get(), KV_DEFAULT_SEQUENCE, rows.data(), 1);
    OK(kv_context_get_info(c.get(), &after, &e));
    EXPECT_EQ(after.projections_avoided - before.projections_avoided, avoided) << "at length " << length;
    EXPECT_EQ(after.projections - before.projections, 3U);
  }
}

TEST_P(Golden, TwoLayers) {
  const Matrix k2 = {{0, 1}, {1, 0}}, v2 = {{1, 1}, {0, 1}};
  const ModelPtr model = attention_model(runtime_.get(), 2, 1.0F, {{kIdentity2, kK1, kV1}, {kIdentity2, k2, v2}});
  const ContextPtr c = context(model.get());
  Tracer tracer;
  Error e;
  OK(kv_context_set_trace(c.get(), Tracer::record, &tracer, &e));
  const std::vector<float> outputs = append(c.get(), KV_DEFAULT_SEQUENCE, kX.data(), 3);
  expect_near(cached(c.get(), 1, KV_CACHE_K, 3, 2), {0, 2, 1, 1, 1.5105F, 1.8199F});
  expect_near(cached(c.get(), 1, KV_CACHE_V, 3, 2), {2, 2, 1, 2, 1.8199F, 3.3305F});
  expect_near(tracer.rows.at("1 weights 2"), {.0701F, .0955F, .8344F});
  expect_near(outputs, {2, 2, 1.5F, 2, 1.7543F, 3.1102F});

  // One token at a time: three projections per layer and step, and the same bits.
  const ContextPtr stepwise = context(model.get());
  for (int t = 0; t < 3; t++) {
    const std::vector<float> row = append(stepwise.get(), KV_DEFAULT_SEQUENCE, kX.data() + 2 * t, 1);
    EXPECT_EQ(0, std::memcmp(row.data(), &outputs[2 * t], 2 * sizeof(float))) << "token " << t;
  }
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(stepwise.get(), &info, &e));
  EXPECT_EQ(info.projections, 3U * 2 * 3);
}

INSTANTIATE_TEST_SUITE_P(Backends, Golden, testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
