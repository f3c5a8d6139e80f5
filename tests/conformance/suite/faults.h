// SPDX-License-Identifier: MIT
//
// The parts of the group faults.
#pragma once

#include <vector>

#include "suite/small_world.h"

namespace kvasir::conformance {

void add_program_faults(std::vector<Case>& cases);  // faults_program.cpp
void add_step_faults(std::vector<Case>& cases);     // faults_step.cpp

}  // namespace kvasir::conformance
