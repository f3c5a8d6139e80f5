// SPDX-License-Identifier: MIT
//
// cos and sin of the positions of a step, for each set of rotary frequencies a program uses: computed once per step, in
// double, and read by all its ROPE ops. The tables lie in the program's memory, [max_tokens, pairs] each.
#pragma once

#include <cstdint>
#include <vector>

#include "kvasir/ops.h"
#include "stage.h"

namespace kvasir::cpu {

class Lowering;

struct RopeTable {
  uint64_t cos, sin;  // offsets in the program's block
  uint32_t pairs;
};

class RopeTables final : public RowOp {
 public:
  // The table for these parameters, made on first use.
  RopeTable table(Lowering& lowering, const kvb_rope& rope);
  bool empty() const { return sets_.empty(); }
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t member) const override;

 private:
  struct Set {
    RopeTable table;
    float magnitude;
    std::vector<double> frequency;  // [pairs]
  };
  std::vector<Set> sets_;
};

}  // namespace kvasir::cpu
