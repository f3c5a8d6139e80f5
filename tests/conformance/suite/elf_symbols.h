// SPDX-License-Identifier: MIT
//
// The symbols that a shared library exports.
#pragma once

#include <string>
#include <vector>

namespace kvasir::conformance {

// Throws Failed when the file is no 64-bit ELF library, Unsupported on systems with other files.
std::vector<std::string> exported_symbols(const std::string& path);

}  // namespace kvasir::conformance
