// SPDX-License-Identifier: MIT
//
// The mutation of targets whose input is one GGUF file. Called by libFuzzer, and by replay_main.cpp in its absence.
#include <algorithm>
#include <cstddef>

#include "fuzz/gguf_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const std::string changed = kvasir::fuzz::mutate_gguf(data, size, seed);
  if (changed.empty() || changed.size() > max_size) return size;
  std::copy(changed.begin(), changed.end(), reinterpret_cast<char*>(data));
  return changed.size();
}
