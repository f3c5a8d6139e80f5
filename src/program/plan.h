// SPDX-License-Identifier: MIT
//
// Scratch planning: where each activation lives in one block of memory, given the largest step. Values whose lifetimes
// do not meet share bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "program/program.h"

namespace kvasir {

struct ScratchPlan {
  std::vector<kvb_value> values;  // the program's values with their places filled in
  uint64_t bytes = 0;
};

// Fails only when the sizes do not fit 64 bits.
Status plan_scratch(const Program& program, uint32_t max_tokens, uint32_t max_outputs, ScratchPlan* out);

// The program as a backend sees it. Points into `program` and `plan`, which must outlive its use.
kvb_program_desc describe(const Program& program, const ScratchPlan& plan);

}  // namespace kvasir
