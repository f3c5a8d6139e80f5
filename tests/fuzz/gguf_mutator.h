// SPDX-License-Identifier: MIT
//
// One structure-aware change to a GGUF file: a key, a tensor or a count is changed, dropped, doubled or moved, and the
// rest of the file stays right around it. What is no GGUF file gets a few damaged bytes. The same seed makes the same
// change.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::fuzz {

std::string mutate_gguf(const uint8_t* data, size_t size, uint32_t seed);

}  // namespace kvasir::fuzz
