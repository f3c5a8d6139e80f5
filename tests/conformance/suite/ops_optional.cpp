// SPDX-License-Identifier: MIT
//
// Optional ops that work on rows: LAYER_NORM, ACTIVATION, SCALE, SOFTCAP, COPY_HEADS, HEAD_LINEAR, TOP_K.
#include <bit>

#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/ops.h"

namespace kvasir::conformance {
namespace {

using testing::bits;
using Build = std::function<void(OpCase&, uint32_t width, bool in_place)>;

void add_shapes(std::vector<Case>& cases, const std::string& op, uint16_t code, const Build& build) {
  struct Shape {
    uint32_t width, tokens;
  };
  for (const Shape& shape : {Shape{1, 1}, {3, 5}, {33, 2}, {64, 17}, {257, 7}, {1024, 3}}) {
    const uint32_t width = shape.width, tokens = shape.tokens;
    for (const bool in_place : {false, true}) {
      const std::string name = "ops/" + op + "/width=" + std::to_string(width) + ",tokens=" + std::to_string(tokens) +
                               (in_place ? ",in-place" : "");
      cases.push_back({name, "KVB-12 KVB-19", Profile::kFull, [=](Subject& subject) {
                         OpCase test(name, tokens);
                         build(test, width, in_place);
                         test.run(subject, op_limit(code));
                       }});
    }
  }
}

// An op y = f(x) on an input of this deviation and mean.
Build one_input(uint16_t code, std::vector<uint32_t> params, float deviation, float mean) {
  return [=](OpCase& test, uint32_t width, bool in_place) {
    const uint32_t x = test.input(width, deviation, mean), y = in_place ? x : test.builder.tokens(width);
    kvb_op& op = test.op(code, {x}, {y});
    std::copy(params.begin(), params.end(), op.param);
    test.output(y);
  };
}

void add_layer_norm_cases(std::vector<Case>& cases) {
  const auto with_mean = [](float mean, bool weighted) -> Build {
    return [=](OpCase& test, uint32_t width, bool in_place) {
      const uint32_t x = test.input(width, 2, mean), y = in_place ? x : test.builder.tokens(width);
      const uint32_t w = weighted ? test.builder.vector(test.random.normals(width, 0.3f, 1)) : KVB_NONE;
      const uint32_t b = weighted ? test.builder.vector(test.random.normals(width)) : KVB_NONE;
      test.op(KVB_OP_LAYER_NORM, {x, w, b}, {y}, {bits(1e-5f)});
      test.output(y);
    };
  };
  add_shapes(cases, "LAYER_NORM", KVB_OP_LAYER_NORM, with_mean(0.5f, true));
  add_shapes(cases, "LAYER_NORM/mean=100,plain", KVB_OP_LAYER_NORM, with_mean(100, false));
}

void add_copy_heads_case(std::vector<Case>& cases, const std::string& variant, uint32_t sources, bool previous,
                         bool in_place) {
  const std::string name = "ops/COPY_HEADS/" + variant;
  cases.push_back({name, "KVB-12 KVB-19", Profile::kFull, [=](Subject& subject) {
                     constexpr uint32_t kHeads = 3;
                     OpCase test(name, 5);
                     const uint32_t x = test.input(sources * 19), old = previous ? test.input(kHeads * 23) : KVB_NONE;
                     const uint32_t y = in_place ? old : test.builder.tokens(kHeads * 23);
                     test.op(KVB_OP_COPY_HEADS, {x, old}, {y}, {kHeads, 4, 7, 11, sources});
                     test.output(y);
                     test.run(subject, op_limit(KVB_OP_COPY_HEADS));
                   }});
}

void add_head_linear_case(std::vector<Case>& cases, uint32_t type, uint32_t mode) {
  const std::string name = std::string("ops/HEAD_LINEAR/") + type_label(type) + "/" + mode_label(mode);
  cases.push_back(
      {name, "KVB-12 KVB-19", Profile::kFull, [=](Subject& subject) {
         const uint32_t width = block_elements(type) == 1 ? 33 : block_elements(type);
         OpCase test(name, 5, mode);
         const uint32_t x = test.input(3 * width), y = test.builder.tokens(3 * 17);
         test.op(KVB_OP_HEAD_LINEAR, {x, test.builder.weight(test.random.weight(type, 17, width, 3))}, {y}, {3});
         test.output(y);
         test.run(subject, op_limit(KVB_OP_HEAD_LINEAR, type, mode));
       }});
}

// The scores are rows of whole numbers, so ties are frequent. The output buffer holds [O, k] scores, then [O, k] ids.
void run_top_k(Subject& subject, const std::string& name, uint32_t width, uint32_t k) {
  constexpr uint32_t kTokens = 4;
  OpCase test(name, kTokens);
  std::vector<float> table;
  for (uint32_t i = 0; i < kTokens * width; ++i) table.push_back(static_cast<float>(test.random.below(width / 2 + 2)));
  const uint32_t x = test.input(width, table), picked = test.builder.selected(width);
  test.builder.op(KVB_OP_SELECT_ROWS, {x}, {picked});
  test.op(KVB_OP_TOP_K, {picked}, {test.builder.output(k), test.builder.ids(k, KVB_ROWS_OUTPUTS)}, {k});
  testing::TestHost host;
  const testing::TestDevice device = subject.open(host);
  require_supported(device, test.builder, test.cache, static_cast<uint32_t>(test.builder.ops.size() - 1));
  const auto queue = device.queue();
  const testing::TestProgram program(device, test.builder, test.cache);
  const auto none = testing::make_cache(device, queue.get(), test.cache, {});
  testing::StepData step;
  testing::TestSequence sequence;
  step.append(sequence, {0, 1, 2, 3}, true);
  const std::vector<float> got = testing::run_step(device, queue.get(), program, none.get(), step);
  ReferenceCache reference_cache(test.cache);
  Matrix ids;
  const Matrix want = ReferenceProgram(test.builder).run(step, reference_cache, &ids);
  const auto middle = got.begin() + static_cast<std::ptrdiff_t>(got.size() / 2);
  check_within(want, {got.begin(), middle}, op_limit(KVB_OP_TOP_K), "the scores");
  for (size_t i = 0; i < ids.data.size(); ++i) {
    const auto id = std::bit_cast<int32_t>(middle[static_cast<std::ptrdiff_t>(i)]);
    check(id == static_cast<int32_t>(ids.data[i]),
          "id " + std::to_string(i) + " is " + std::to_string(id) + " instead of " + std::to_string(ids.data[i]));
  }
}

}  // namespace

void add_optional_op_cases(std::vector<Case>& cases) {
  add_layer_norm_cases(cases);
  for (uint32_t act = KVB_ACT_SILU; act <= KVB_ACT_RELU; ++act) {
    add_shapes(cases, "ACTIVATION/" + std::to_string(act), KVB_OP_ACTIVATION,
               one_input(KVB_OP_ACTIVATION, {act}, act == KVB_ACT_GELU ? 30.0f : 3.0f, 0));
  }
  add_shapes(cases, "SCALE", KVB_OP_SCALE, one_input(KVB_OP_SCALE, {bits(-0.3f)}, 1e10f, 0));
  add_shapes(cases, "SOFTCAP", KVB_OP_SOFTCAP, one_input(KVB_OP_SOFTCAP, {bits(30.0f)}, 40, 0));
  add_shapes(cases, "SOFTCAP/large", KVB_OP_SOFTCAP, one_input(KVB_OP_SOFTCAP, {bits(30.0f)}, 1e30f, 0));
  add_copy_heads_case(cases, "zeros", 3, false, false);
  add_copy_heads_case(cases, "broadcast", 1, false, false);
  add_copy_heads_case(cases, "previous", 3, true, false);
  add_copy_heads_case(cases, "broadcast,previous,in-place", 1, true, true);
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    for (const uint32_t mode : kModes) add_head_linear_case(cases, type, mode);
  }
  for (const uint32_t width : {1u, 7u, 33u, 300u}) {
    for (const uint32_t k : {1u, width > 5 ? 5u : 1u, width}) {
      const std::string name = "ops/TOP_K/width=" + std::to_string(width) + ",k=" + std::to_string(k);
      if (!cases.empty() && cases.back().name == name) continue;
      cases.push_back({name, "KVB-12", Profile::kFull, [=](Subject& subject) { run_top_k(subject, name, width, k); }});
    }
  }
}

}  // namespace kvasir::conformance
