// SPDX-License-Identifier: MIT
//
// Whether a shared library is all there. The system's loader maps what the headers of a file promise without asking how
// long the file is, and dies with SIGBUS where a copy was cut short. Content is not judged: a complete file is code.
#pragma once

#include <string>

#include "base/status.h"

namespace kvasir {

// KV_CORRUPT: the file ends before the end of something its headers speak of, or they contradict themselves. What is no
// ELF file of this machine's kind passes: the system's loader refuses that by itself, with a better reason.
Status check_elf_file(const std::string& path);

}  // namespace kvasir
