// SPDX-License-Identifier: MIT
//
// LINEAR: every weight type and compute mode, widths and rows at and beside the sizes that kernels like, biases, views
// of fused weights.
#include <cmath>

#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/ops.h"

namespace kvasir::conformance {
namespace {

struct Shape {
  uint32_t rows, width, tokens;  // for types in blocks the width is rounded up to whole blocks
  bool bias;
  uint32_t first;  // row of the weight; two more rows lie behind the view
};
constexpr Shape kShapes[] = {
    {1, 1, 1, false, 0},   {3, 3, 2, true, 0},      {33, 31, 3, false, 5},   {64, 33, 5, true, 16},
    {17, 64, 7, true, 3},  {130, 100, 16, true, 0}, {31, 257, 17, false, 1}, {65, 520, 33, true, 7},
    {257, 96, 1, true, 0}, {16, 1030, 4, false, 0},
};

void run_shape(Subject& subject, const std::string& name, uint32_t type, uint32_t mode, const Shape& shape) {
  const uint32_t block = block_elements(type), width = (shape.width + block - 1) / block * block;
  OpCase test(name, shape.tokens, mode);
  const uint32_t weight_rows = shape.first + shape.rows + (shape.first > 0 ? 2 : 0);
  const uint32_t w = test.builder.weight(test.random.weight(type, weight_rows, width));
  const uint32_t bias = shape.bias ? test.builder.vector(test.random.normals(weight_rows)) : KVB_NONE;
  const uint32_t x = test.input(width), y = test.builder.tokens(shape.rows);
  test.op(KVB_OP_LINEAR, {x, w, bias}, {y}, {shape.first});
  test.output(y);
  test.run(subject, op_limit(KVB_OP_LINEAR, type, mode));
}

// Inputs with elements of very different size: int8 blocks see large ones beside small ones, zeros and denormals.
void run_uneven(Subject& subject, const std::string& name, uint32_t type, uint32_t mode) {
  const uint32_t width = 512, tokens = 9;
  OpCase test(name, tokens, mode);
  std::vector<float> table = test.random.normals(size_t{tokens} * width);
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t run = i / 32 % 6;
    table[i] *= run == 0 ? 0.0f : run == 1 ? 1e-41f : run == 2 ? 1e4f : run == 3 ? 1e-6f : 1.0f;
    if (i % 97 == 0) table[i] = -300;
  }
  const uint32_t w = test.builder.weight(test.random.weight(type, 40, width));
  const uint32_t x = test.input(width, table), y = test.builder.tokens(40);
  test.op(KVB_OP_LINEAR, {x, w}, {y});
  test.output(y);
  // The mean of random data does not hold for these.
  const Limit limit = op_limit(KVB_OP_LINEAR, type, mode);
  test.run(subject, {limit.largest * limit.largest, limit.largest});
}

}  // namespace

void add_linear_cases(std::vector<Case>& cases) {
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    const Profile profile = type <= KV_TYPE_F16 ? Profile::kCore : Profile::kFull;
    for (const uint32_t mode : kModes) {
      const std::string stem = std::string("ops/LINEAR/") + type_label(type) + "/" + mode_label(mode) + "/";
      const char* obligations = mode == KV_COMPUTE_EXACT ? "KVB-19 KVB-20" : "KVB-19";
      for (const Shape& shape : kShapes) {
        const uint32_t block = block_elements(type), width = (shape.width + block - 1) / block * block;
        const std::string name = stem + "rows=" + std::to_string(shape.rows) + ",width=" + std::to_string(width) +
                                 ",tokens=" + std::to_string(shape.tokens) + (shape.bias ? ",bias" : "") +
                                 (shape.first > 0 ? ",first=" + std::to_string(shape.first) : "");
        cases.push_back(
            {name, obligations, profile, [=](Subject& subject) { run_shape(subject, name, type, mode, shape); }});
      }
      const std::string name = stem + "uneven";
      cases.push_back({name, obligations, profile, [=](Subject& subject) { run_uneven(subject, name, type, mode); }});
    }
  }
}

}  // namespace kvasir::conformance
