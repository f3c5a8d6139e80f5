// SPDX-License-Identifier: MIT
//
// Mandatory ops that work on each row by itself: EMBED, RMS_NORM, ROPE, GLU, ADD, SELECT_ROWS.
#include <cmath>

#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/ops.h"

namespace kvasir::conformance {
namespace {

using testing::bits;

constexpr uint32_t kWidths[] = {1, 3, 31, 33, 64, 127, 130, 256, 257, 1024};
constexpr uint32_t kTokens[] = {1, 2, 3, 5, 7, 16, 17, 33};

std::string shape(uint32_t width, uint32_t tokens) {
  return "width=" + std::to_string(width) + ",tokens=" + std::to_string(tokens);
}
Profile profile_of(uint32_t type) { return type <= KV_TYPE_F16 ? Profile::kCore : Profile::kFull; }

// Adds a case for every width, each with another number of tokens.
void for_widths(std::vector<Case>& cases, const std::string& name,
                const std::function<void(OpCase&, uint32_t width)>& build, uint16_t code, const char* obligations) {
  for (size_t i = 0; i < std::size(kWidths); ++i) {
    const uint32_t width = kWidths[i], tokens = kTokens[i % std::size(kTokens)];
    const std::string full = "ops/" + name + "/" + shape(width, tokens);
    cases.push_back({full, obligations, Profile::kCore, [=](Subject& subject) {
                       OpCase test(full, tokens);
                       build(test, width);
                       test.run(subject, op_limit(code));
                     }});
  }
}

void add_embed_cases(std::vector<Case>& cases) {
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    for (const uint32_t blocks : {1u, 3u, 9u}) {
      const uint32_t width = blocks * block_elements(type) + (block_elements(type) == 1 ? 40 : 0), tokens = 7;
      const std::string name = std::string("ops/EMBED/") + type_label(type) + "/" + shape(width, tokens);
      cases.push_back({name, "KVB-19", profile_of(type), [=](Subject& subject) {
                         OpCase test(name, tokens);
                         const uint32_t y = test.builder.tokens(width);
                         const uint32_t table = test.builder.weight(test.random.weight(type, 2 * tokens, width));
                         const float factor = blocks == 3 ? 5.656854f : 0.0f;
                         test.op(KVB_OP_EMBED, {table}, {y}, {bits(factor)});
                         test.output(y);
                         test.run(subject, op_limit(KVB_OP_EMBED));
                       }});
    }
  }
  const std::string name = "ops/EMBED/positions";
  cases.push_back({name, "KVB-19", Profile::kFull, [=](Subject& subject) {
                     OpCase test(name, 5);
                     const uint32_t y = test.builder.tokens(33),
                                    table = test.builder.weight(test.random.weight(1, 9, 33));
                     const uint32_t positions = test.builder.weight(test.random.weight(KV_TYPE_F32, 12, 33));
                     test.op(KVB_OP_EMBED, {table, positions}, {y}, {bits(3.0f)});
                     test.output(y);
                     test.run(subject, op_limit(KVB_OP_EMBED), 6);
                   }});
}

// Ids and rows in one step; rows pass as they are, whatever the scale.
void add_embedding_row_case(std::vector<Case>& cases) {
  cases.push_back(
      {"ops/EMBED/rows", "KVB-19", Profile::kCore, [](Subject& subject) {
         OpCase test("ops/EMBED/rows", 6);
         const uint32_t y = test.builder.tokens(35);
         test.op(KVB_OP_EMBED, {test.builder.weight(test.random.weight(KV_TYPE_F32, 4, 35))}, {y}, {bits(7.0f)});
         test.output(y);
         testing::TestHost host;
         const testing::TestDevice device = subject.open(host);
         const testing::Owned<kvb_queue> queue = device.queue();
         const testing::TestProgram program(device, test.builder, test.cache);
         const auto pages = testing::make_cache(device, queue.get(), test.cache, {});
         testing::StepData step;
         testing::TestSequence sequence;
         const int32_t a = step.embed(test.random.normals(35)), b = step.embed(test.random.normals(35));
         step.append(sequence, {2, b, 0, a, a, 3}, true);
         const auto got = testing::run_step(device, queue.get(), program, pages.get(), step);
         ReferenceCache none(test.cache);
         check_within(ReferenceProgram(test.builder).run(step, none), got, op_limit(KVB_OP_EMBED), "the output");
       }});
}

void add_norm_cases(std::vector<Case>& cases) {
  const auto plain = [](OpCase& test, uint32_t width) {
    const uint32_t x = test.input(width, 2.0f), y = test.builder.tokens(width);
    const uint32_t w = test.builder.vector(test.random.normals(width, 0.2f, 1));
    test.op(KVB_OP_RMS_NORM, {x, w}, {y}, {bits(1e-5f), 0});
    test.output(y);
  };
  for_widths(cases, "RMS_NORM", plain, KVB_OP_RMS_NORM, "KVB-19");
  const auto heads = [](OpCase& test, uint32_t width) {
    const uint32_t x = test.input(width * 3, 0.5f);
    const uint32_t w = test.builder.vector(test.random.normals(width, 0.2f, 1));
    test.op(KVB_OP_RMS_NORM, {x, w}, {x}, {bits(1e-6f), width});
    test.output(x);
  };
  for_widths(cases, "RMS_NORM/heads,in-place", heads, KVB_OP_RMS_NORM, "KVB-19");
  // Squares beyond f32, squares below it, one element that outweighs all others, eps 0, no weight.
  const auto sized = [](float size) {
    return [size](OpCase& test, uint32_t width) {
      std::vector<float> table = test.random.normals(size_t{test.tokens()} * width, size);
      for (uint32_t t = 0; t < test.tokens(); ++t) table[size_t{t} * width + t % width] = 4 * size;
      const uint32_t x = test.input(width, table), y = test.builder.tokens(width);
      test.op(KVB_OP_RMS_NORM, {x, KVB_NONE}, {y}, {bits(size < 1 ? 1e-5f : 0), 0});
      test.output(y);
    };
  };
  for_widths(cases, "RMS_NORM/size=1e18", sized(1e18f), KVB_OP_RMS_NORM, "KVB-19");
  for_widths(cases, "RMS_NORM/size=1e30", sized(1e30f), KVB_OP_RMS_NORM, "KVB-19");
  for_widths(cases, "RMS_NORM/size=1e-30", sized(1e-30f), KVB_OP_RMS_NORM, "KVB-19");
  for_widths(cases, "RMS_NORM/size=1e-41", sized(1e-41f), KVB_OP_RMS_NORM, "KVB-19");
}

void add_elementwise_cases(std::vector<Case>& cases) {
  const auto add = [](bool in_place) {
    return [in_place](OpCase& test, uint32_t width) {
      const uint32_t a = test.input(width), b = test.input(width, 100.0f);
      const uint32_t y = in_place ? b : test.builder.tokens(width);
      test.op(KVB_OP_ADD, {a, b}, {y});
      test.output(y);
    };
  };
  for_widths(cases, "ADD", add(false), KVB_OP_ADD, "KVB-19");
  for_widths(cases, "ADD/in-place", add(true), KVB_OP_ADD, "KVB-19");
  static constexpr const char* kNames[] = {"SILU", "GELU", "GELU_TANH", "RELU"};
  for (uint32_t act = KVB_ACT_SILU; act <= KVB_ACT_RELU; ++act) {
    const auto glu = [act](float deviation, bool joint, bool in_place) {
      return [=](OpCase& test, uint32_t width) {
        const uint32_t gate = test.input(joint ? 2 * width : width, deviation);
        const uint32_t up = joint ? KVB_NONE : test.input(width);
        const uint32_t y = in_place ? gate : test.builder.tokens(width);
        test.op(KVB_OP_GLU, {gate, up}, {y}, {act});
        test.output(y);
      };
    };
    const std::string name = std::string("GLU/") + kNames[act - 1];
    for_widths(cases, name, glu(2, false, false), KVB_OP_GLU, "KVB-19");
    for_widths(cases, name + "/joint", glu(2, true, false), KVB_OP_GLU, "KVB-19");
    for_widths(cases, name + "/in-place,large", glu(60, false, true), KVB_OP_GLU, "KVB-19");
  }
  const auto select = [](OpCase& test, uint32_t width) {
    test.op(KVB_OP_SELECT_ROWS, {test.input(width, 1e20f)}, {test.builder.output(width)});
  };
  for_widths(cases, "SELECT_ROWS", select, KVB_OP_SELECT_ROWS, "KVB-19");
}

struct RopeShape {
  uint32_t heads, head_dim, first, pairs, position;
};
constexpr RopeShape kRopeShapes[] = {
    {1, 64, 0, 32, 0},        {4, 80, 0, 40, 17}, {2, 96, 0, 24, 255},   {3, 128, 0, 64, 4093},
    {1, 256, 64, 64, 100000}, {5, 6, 0, 3, 255},  {2, 7, 1, 3, 31},      {8, 20, 4, 5, 1000000},
    {1, 2, 0, 1, 3},          {2, 64, 0, 0, 9},   {40, 64, 32, 16, 511},
};

void add_rope_cases(std::vector<Case>& cases) {
  for (size_t i = 0; i < 2 * std::size(kRopeShapes); ++i) {
    const RopeShape s = kRopeShapes[i / 2];
    const bool adjacent = i % 2 == 0, in_place = i % 4 < 2;
    const uint32_t tokens = kTokens[i % std::size(kTokens)];
    const std::string name = "ops/ROPE/" + std::string(adjacent ? "ADJACENT" : "HALVES") +
                             "/heads=" + std::to_string(s.heads) + ",head_dim=" + std::to_string(s.head_dim) +
                             ",first=" + std::to_string(s.first) + ",pairs=" + std::to_string(s.pairs) +
                             ",position=" + std::to_string(s.position) + ",tokens=" + std::to_string(tokens);
    cases.push_back({name, "KVB-19", Profile::kCore, [=](Subject& subject) {
                       OpCase test(name, tokens);
                       test.builder.limits.length = s.position + tokens;
                       std::vector<double> frequency;
                       for (uint32_t pair = 0; pair < s.pairs; ++pair)
                         frequency.push_back(std::pow(10000.0, -1.0 * pair / s.pairs));
                       test.builder.rope(KVB_ROPE_HALVES, 0, 1, {1.0});  // another one in front of it
                       const uint32_t rope = test.builder.rope(adjacent ? KVB_ROPE_ADJACENT : KVB_ROPE_HALVES, s.first,
                                                               i % 3 == 0 ? 1.0f : 1.1875f, frequency);
                       const uint32_t width = s.heads * s.head_dim;
                       const uint32_t x = test.input(width), y = in_place ? x : test.builder.tokens(width);
                       test.op(KVB_OP_ROPE, {x}, {y}, {s.heads, s.head_dim, rope});
                       test.output(y);
                       test.run(subject, op_limit(KVB_OP_ROPE), s.position);
                     }});
  }
}

}  // namespace

void add_row_op_cases(std::vector<Case>& cases) {
  add_embed_cases(cases);
  add_embedding_row_case(cases);
  add_norm_cases(cases);
  add_rope_cases(cases);
  add_elementwise_cases(cases);
}

}  // namespace kvasir::conformance
