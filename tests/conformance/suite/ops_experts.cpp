// SPDX-License-Identifier: MIT
//
// Optional ops of expert layers, as the chain they form: MOE_ROUTE, MOE_LINEAR, MOE_SUM. Router scores are kept apart so
// that rounding cannot change a choice; ties are exact.
#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/ops.h"

namespace kvasir::conformance {
namespace {

using testing::bits;

struct Route {
  uint32_t experts, used, scoring;
  bool bias;
  uint32_t groups, groups_used;
};

// Scores of each row are a permutation of steps of 1/4, so that no two are close.
std::vector<float> apart(Random& random, uint32_t rows, uint32_t width) {
  std::vector<float> table;
  for (uint32_t r = 0; r < rows; ++r) {
    std::vector<float> row;
    for (uint32_t i = 0; i < width; ++i) row.push_back(0.25f * static_cast<float>(i) - 1);
    for (uint32_t i = width; i > 1; --i) std::swap(row[i - 1], row[random.below(i)]);
    table.insert(table.end(), row.begin(), row.end());
  }
  return table;
}

uint32_t add_route(OpCase& test, const Route& route, uint32_t scores, uint32_t* weights) {
  const uint32_t ids = test.builder.ids(route.used);
  *weights = test.builder.tokens(route.used);
  std::vector<float> bias(route.experts);
  for (uint32_t e = 0; e < route.experts; ++e) bias[e] = e % 3 == 0 ? 0.625f : 0.0f;
  const uint32_t bias_value = route.bias ? test.builder.vector(bias) : KVB_NONE;
  test.op(KVB_OP_MOE_ROUTE, {scores, bias_value}, {*weights, ids},
          {route.experts, route.used, route.scoring, bits(1.5f), route.groups | route.groups_used << 16});
  return ids;
}

// The weights of a route; and which experts they belong to, through matrices [1][1] of the expert's number.
void run_route(Subject& subject, const std::string& name, const Route& route, bool ties, bool show_ids) {
  OpCase test(name, 5);
  const std::vector<float> table =
      ties ? std::vector<float>(5 * route.experts, 0.5f) : apart(test.random, 5, route.experts);
  const uint32_t scores = test.input(route.experts, table), one = test.input(1, std::vector<float>(5, 1.0f));
  uint32_t weights = 0;
  const uint32_t ids = add_route(test, route, scores, &weights);
  if (!show_ids) {
    test.output(weights);
    test.run(subject, op_limit(KVB_OP_MOE_ROUTE));
    return;
  }
  std::vector<float> numbers(route.experts);
  for (uint32_t e = 0; e < route.experts; ++e) numbers[e] = 1 + static_cast<float>(e);
  const uint32_t y = test.builder.tokens(1, route.used), sum = test.builder.tokens(1);
  const uint32_t w = test.builder.weight(testing::f32_tensor(1, 1, numbers, route.experts));
  test.builder.op(KVB_OP_MOE_LINEAR, {one, w, KVB_NONE, ids}, {y});
  test.builder.op(KVB_OP_MOE_SUM, {y, weights}, {sum});
  test.output(sum);
  test.run(subject, op_limit(KVB_OP_MOE_SUM));
}

// gate and up per expert from one row, GLU, down per expert from each expert's row, the sum.
void run_layer(Subject& subject, const std::string& name, uint32_t type, uint32_t mode, bool bias) {
  const uint32_t width = block_elements(type) == 1 ? 33 : block_elements(type);
  constexpr uint32_t kExperts = 6, kUsed = 3, kTokens = 4;
  OpCase test(name, kTokens, mode);
  const uint32_t scores = test.input(kExperts, apart(test.random, kTokens, kExperts)), x = test.input(width);
  uint32_t weights = 0;
  const uint32_t ids = add_route(test, {kExperts, kUsed, KVB_ROUTE_SOFTMAX_NORMALIZED, false, 0, 0}, scores, &weights);
  const auto product = [&](uint32_t from, uint32_t rows, uint32_t in_width) {
    const uint32_t y = test.builder.tokens(rows, kUsed);
    const uint32_t w = test.builder.weight(test.random.weight(type, rows, in_width, kExperts));
    const uint32_t b = bias ? test.builder.matrix(kExperts, rows, test.random.normals(kExperts * rows)) : KVB_NONE;
    test.builder.op(KVB_OP_MOE_LINEAR, {from, w, b, ids}, {y});
    return y;
  };
  const uint32_t first = product(x, width, width), second = product(first, 5, width), y = test.builder.tokens(5);
  test.builder.op(KVB_OP_MOE_SUM, {second, weights}, {y});
  test.output(y);
  // The error of the first product goes through the second, whose scale has no part of it.
  const Limit once = op_limit(KVB_OP_MOE_LINEAR, type, mode);
  test.run(subject, both(op_limit(KVB_OP_MOE_SUM), both(both(once, once), both(once, once))));
}

}  // namespace

void add_expert_cases(std::vector<Case>& cases) {
  static constexpr const char* kScoring[] = {"SOFTMAX", "SOFTMAX_NORMALIZED", "SIGMOID", "SIGMOID_NORMALIZED"};
  for (uint32_t scoring = KVB_ROUTE_SOFTMAX; scoring <= KVB_ROUTE_SIGMOID_NORMALIZED; ++scoring) {
    for (const Route& route : {Route{1, 1, scoring, false, 0, 0},
                               {8, 2, scoring, false, 0, 0},
                               {33, 7, scoring, true, 0, 0},
                               {16, 4, scoring, true, 4, 2},
                               {12, 3, scoring, false, 3, 1},
                               {8, 3, scoring, false, 8, 4}}) {
      for (const bool ids : {false, true}) {
        const std::string name =
            std::string("ops/MOE_ROUTE/") + kScoring[scoring - 1] + "/experts=" + std::to_string(route.experts) +
            ",used=" + std::to_string(route.used) + (route.bias ? ",bias" : "") +
            (route.groups > 0 ? ",groups=" + std::to_string(route.groups) + "," + std::to_string(route.groups_used)
                              : "") +
            (ids ? ",ids" : "");
        cases.push_back({name, "KVB-12 KVB-19", Profile::kFull,
                         [=](Subject& subject) { run_route(subject, name, route, false, ids); }});
      }
    }
  }
  const Route tied{9, 4, KVB_ROUTE_SOFTMAX, false, 0, 0};
  cases.push_back({"ops/MOE_ROUTE/ties", "KVB-12", Profile::kFull,
                   [=](Subject& subject) { run_route(subject, "ops/MOE_ROUTE/ties", tied, true, true); }});
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    for (const uint32_t mode : kModes) {
      const std::string name = std::string("ops/MOE_LINEAR/") + type_label(type) + "/" + mode_label(mode);
      const bool bias = type % 2 == 0;
      cases.push_back({name, "KVB-12 KVB-19", Profile::kFull,
                       [=](Subject& subject) { run_layer(subject, name, type, mode, bias); }});
    }
  }
}

}  // namespace kvasir::conformance
