// SPDX-License-Identifier: MIT
//
// Three models small enough for pencil and paper, made through the public builder.
#pragma once

#include <vector>

#include "common/kv.h"

namespace kvasir::cli {

using Matrix = std::vector<std::vector<float>>;

struct ExampleLayer {
  Matrix q, k, v;  // act as x W
};

struct WorkedExample {
  const char* title;
  float scale;
  std::vector<ExampleLayer> layers;
  Matrix tokens;  // [tokens][dim], the rows that go in
};

// number: 1, 2 or 3.
const WorkedExample& worked_example(int number);
ModelPtr build_example(kv_runtime* runtime, const WorkedExample& example);

}  // namespace kvasir::cli
