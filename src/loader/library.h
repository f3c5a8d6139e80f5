// SPDX-License-Identifier: MIT
//
// Opening a shared library and finding a function in it. There is no close: code of a plugin may be needed for as long
// as any of its threads or static objects lives, so it stays mapped until the process ends.
#pragma once

#include <string>

#include "base/status.h"

namespace kvasir {

// `path` is absolute. Runs the library's constructors, with the caller's floating-point state restored afterwards. A
// library that is open already is not opened twice. Failures carry the operating system's text.
Status open_library(const std::string& path, void** out_library);

// null when the library has no such symbol of its own.
void* library_symbol(void* library, const char* name);

// Path of the file that holds the code or data at `address`, or "" when it cannot be told.
std::string file_of_address(const void* address);

}  // namespace kvasir
