// SPDX-License-Identifier: MIT
//
// A program as text, one op a line: for error messages, golden tests and people.
#pragma once

#include <string>

#include "program/program.h"

namespace kvasir {

// "ATTENTION", or "op 99".
std::string op_name(uint16_t code);

// "blk.3: ATTENTION attn" of one op, as messages name it.
std::string op_text(const Program& program, size_t op);

// The whole program, for example "%7[T,64] = LINEAR %6, w12[64,64]".
std::string print(const Program& program);

}  // namespace kvasir
