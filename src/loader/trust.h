// SPDX-License-Identifier: MIT
//
// Whether a file may be loaded as code: only if nobody but root and the effective user could have put it there.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kvasir {

// The system refused for want of memory or file descriptors, which says nothing about a file: the same may work later.
// Where these are told apart, such a failure is KV_OUT_OF_MEMORY.
bool is_shortage(int error);

// Absolute, without links, "." and "..". KV_NOT_FOUND when there is nothing of that name.
Status resolve_path(const std::string& path, std::string* out);

// Judges a resolved path. What is not a regular file is KV_INVALID_ARGUMENT. No element of the path may be
// world-writable (sticky directories included) or owned by anyone but root and the effective user; refusals are
// KV_DENIED and name the element. Below `library_directory` (resolved; "" = none) a file is as trusted as the library:
// the elements down to that directory are not judged, its owner is accepted, and so is what everybody may write to if
// everybody may replace the library. `warning` gets a sentence for a group-writable element; otherwise it is untouched.
Status check_trust(const std::string& real_path, std::string_view library_directory, std::string* warning);

}  // namespace kvasir
