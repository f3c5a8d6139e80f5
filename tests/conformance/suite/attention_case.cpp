// SPDX-License-Identifier: MIT
//
// The two programs of an attention case, and running them.
#include "suite/attention_case.h"

#include <cmath>
#include <numeric>

#include "reference/quantize.h"

namespace kvasir::conformance {
namespace {

using testing::bits;

// Keys, values and queries of all positions: token t of a step is row `position` of the tables.
struct Tables {
  std::vector<float> q, k, v;  // [length][...]
};

Tables make_tables(Random& random, const AttentionShape& shape) {
  const size_t length = shape.history + shape.tokens;
  Tables tables;
  tables.q = random.normals(length * shape.heads * shape.k_dim, shape.sharpness);
  tables.k = random.normals(length * shape.kv_heads * shape.k_dim);
  tables.v = random.normals(length * shape.kv_heads * shape.v_dim);
  return tables;
}

void add_store(OpCase& test, const AttentionShape& shape, const Tables& tables) {
  const uint32_t k = test.input(shape.kv_heads * shape.k_dim, tables.k);
  const uint32_t v = shape.latent ? KVB_NONE : test.input(shape.kv_heads * shape.v_dim, tables.v);
  test.builder.op(KVB_OP_KV_STORE, {k, v}, {}, {0});
}

// Stores the history; its output is a formality.
OpCase store_program(const AttentionShape& shape, const Tables& tables) {
  OpCase test("store", std::max(shape.history, 1u));
  add_store(test, shape, tables);
  test.output(test.input(1, std::vector<float>(shape.history + shape.tokens, 0)));
  return test;
}

OpCase attention_program(const std::string& name, const AttentionShape& shape, const Tables& tables) {
  OpCase test(name, shape.tokens, shape.compute_mode);
  add_store(test, shape, tables);
  const uint32_t q = test.input(shape.heads * shape.k_dim, tables.q);
  const uint32_t y = test.builder.tokens(shape.heads * shape.v_dim);
  std::vector<float> slopes;
  for (uint32_t h = 0; h < shape.heads; ++h) slopes.push_back(std::exp2(-8.0f * static_cast<float>(h + 1) / 8));
  const uint32_t sinks = shape.sinks ? test.builder.vector(test.random.normals(shape.heads, 2)) : KVB_NONE;
  const uint32_t slope_value = shape.slopes ? test.builder.vector(slopes) : KVB_NONE;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.k_dim));
  test.op(KVB_OP_ATTENTION, {q, sinks, slope_value}, {y}, {0, shape.heads, bits(scale), bits(shape.cap)});
  test.output(y);
  return test;
}

testing::CacheSpec cache_of(const testing::TestDevice& device, const AttentionShape& shape) {
  const uint32_t plain = plain_cache_type(device);
  return testing::one_group(
      1, {shape.k_type == KV_TYPE_DEFAULT ? plain : shape.k_type,
          shape.v_type == KV_TYPE_DEFAULT ? plain : shape.v_type, shape.kv_heads, shape.k_dim, shape.v_dim,
          shape.window, page_tokens_near(device, shape.page_tokens), shape.latent ? uint32_t{KVB_CACHE_LATENT} : 0});
}

std::vector<int32_t> ids_from(uint32_t first, uint32_t count) {
  std::vector<int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), static_cast<int32_t>(first));
  return ids;
}

}  // namespace

std::string shape_label(const AttentionShape& s) {
  std::string label = "heads=" + std::to_string(s.heads) + ":" + std::to_string(s.kv_heads) +
                      ",dim=" + std::to_string(s.k_dim) + (s.v_dim != s.k_dim ? ":" + std::to_string(s.v_dim) : "") +
                      ",position=" + std::to_string(s.history) + ",tokens=" + std::to_string(s.tokens) +
                      ",page=" + std::to_string(s.page_tokens);
  if (s.window > 0) label += ",window=" + std::to_string(s.window);
  if (s.cap > 0) label += ",cap";
  if (s.sinks) label += ",sinks";
  if (s.slopes) label += ",slopes";
  if (s.latent) label += ",latent";
  if (s.sharpness > 100) label += ",sharp";
  return label;
}

void run_attention(Subject& subject, const std::string& name, const AttentionShape& shape) {
  testing::TestHost host;
  const testing::TestDevice device = subject.open(host);
  Random random(name);
  const Tables tables = make_tables(random, shape);
  const testing::CacheSpec spec = cache_of(device, shape);
  const OpCase store = store_program(shape, tables), test = attention_program(name, shape, tables);
  const auto is_attention = [](const kvb_op& op) { return op.code == KVB_OP_ATTENTION; };
  const auto& ops = test.builder.ops;
  require_supported(device, test.builder, spec,
                    static_cast<uint32_t>(std::find_if(ops.begin(), ops.end(), is_attention) - ops.begin()));

  const testing::Owned<kvb_queue> queue = device.queue();
  const uint32_t page_tokens = spec.groups[0].page_tokens, length = shape.history + shape.tokens;
  const uint32_t pages = (length + page_tokens - 1) / page_tokens;
  const auto cache = testing::make_cache(device, queue.get(), spec, {pages + 1});
  testing::TestSequence sequence{0, {{}}};
  for (uint32_t page = pages; page > 0; --page) sequence.pages[0].push_back(page);
  ReferenceCache reference_cache(spec);
  const auto step_of = [&](uint32_t count, bool all) {
    testing::StepData step;
    step.append(sequence, ids_from(sequence.length, count), all);
    return step;
  };
  if (shape.history > 0) {
    testing::StepData step = step_of(shape.history, false);
    const testing::TestProgram program(device, store.builder, spec);
    testing::run_step(device, queue.get(), program, cache.get(), step);
    ReferenceProgram(store.builder).run(step, reference_cache);
  }
  const testing::TestProgram program(device, test.builder, spec);
  testing::StepData step = step_of(shape.tokens, true);
  const std::vector<float> got = testing::run_step(device, queue.get(), program, cache.get(), step);
  const Limit limit = attention_limit(spec.groups[0].k_type, spec.groups[0].v_type, shape.compute_mode);
  check_within(ReferenceProgram(test.builder).run(step, reference_cache), got, limit, "the output");
}

}  // namespace kvasir::conformance
