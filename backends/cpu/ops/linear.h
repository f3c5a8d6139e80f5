// SPDX-License-Identifier: MIT
//
// The stage of matrix products: one or several LINEARs of the same rows, so that Q, K and V (gate and up) of a decode
// step are one stream over memory without a barrier between them.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/walk.h"
#include "stage.h"

namespace kvasir::cpu {

struct LinearPart {
  uint32_t weight;   // index into the weights
  bool packed_here;  // a single row, packed in the program's block at `packed`
  uint64_t packed;
  WeightType type;
  uint32_t width, first_row, rows;
  uint32_t bias;  // index into the weights or KVB_NONE
  Tensor y;
  bool adds = false;  // `residual` is added last
  Tensor residual;
  uint32_t value;  // of the program, that y is

  uint32_t groups() const { return linear_groups(first_row, rows); }
};

class LinearStage final : public Stage {
 public:
  // x: the rows themselves (kF32) or, at `prepared`, the operand rows made of them.
  LinearStage(OperandType operand, const Tensor& x, uint64_t prepared, size_t row_bytes, uint32_t value)
      : operand_(operand), x_(x), prepared_(prepared), row_bytes_(row_bytes), value_(value) {}

  // Whether a product of these rows may run beside those already here.
  bool accepts(OperandType operand, uint32_t value, const LinearPart& part) const;
  void add(const LinearPart& part);

  std::vector<LinearPart>& parts() { return parts_; }
  const Tensor& x() const { return x_; }

  uint32_t chunks(const StepView& view) const override;
  void run(const StepView& view, uint32_t chunk, uint32_t member) const override;

 private:
  uint32_t groups_per_chunk(const StepView& view) const;
  void run_part(const StepView& view, const LinearPart& part, uint32_t first, uint32_t end) const;

  OperandType operand_;
  Tensor x_;
  uint64_t prepared_;
  size_t row_bytes_;
  uint32_t value_;
  uint32_t groups_ = 0;  // of all parts
  std::vector<LinearPart> parts_;
};

// What a LINEAR multiplies by.
OperandType linear_operand(const sdk::Program& program, const kvb_op& op);

}  // namespace kvasir::cpu
