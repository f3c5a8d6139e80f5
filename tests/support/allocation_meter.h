// SPDX-License-Identifier: MIT
//
// Counts the bytes a test program asks operator new for. Needs allocation_meter.cpp among the program's sources.
#pragma once

#include <cstddef>

namespace kvasir::testing {

size_t allocated_bytes();  // since the program began; never goes down

}  // namespace kvasir::testing
