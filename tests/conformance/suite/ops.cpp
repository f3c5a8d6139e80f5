// SPDX-License-Identifier: MIT
//
// The group "ops": every opcode, type, compute mode and many shapes, each against the double reference.
#include "suite/ops.h"

namespace kvasir::conformance {

void add_ops_cases(std::vector<Case>& cases) {
  add_row_op_cases(cases);
  add_linear_cases(cases);
  add_attention_cases(cases);
  add_optional_op_cases(cases);
  add_expert_cases(cases);
}

}  // namespace kvasir::conformance
