// SPDX-License-Identifier: MIT
//
// The parts of the group "ops".
#pragma once

#include "suite/suite.h"

namespace kvasir::conformance {

void add_row_op_cases(std::vector<Case>& cases);
void add_linear_cases(std::vector<Case>& cases);
void add_attention_cases(std::vector<Case>& cases);
void add_optional_op_cases(std::vector<Case>& cases);
void add_expert_cases(std::vector<Case>& cases);

}  // namespace kvasir::conformance
