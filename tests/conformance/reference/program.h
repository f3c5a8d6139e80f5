// SPDX-License-Identifier: MIT
//
// Whole programs in double precision: the description that a backend compiles, and the steps that it gets.
#pragma once

#include <vector>

#include "reference/ops.h"
#include "support/backend_harness.h"

namespace kvasir::conformance {

class ReferenceProgram {
 public:
  // `program` stays where it is while this lives.
  explicit ReferenceProgram(const testing::ProgramBuilder& program);

  // The output of a step [O, width]; keys and values go to `cache`.
  // `second` gets the second output of the last op.
  Matrix run(const testing::StepData& step, ReferenceCache& cache, Matrix* second = nullptr) const;

 private:
  Matrix run_op(const OpView& view, Matrix* second) const;

  const testing::ProgramBuilder& program_;
  std::vector<WeightMatrix> weights_;
};

}  // namespace kvasir::conformance
