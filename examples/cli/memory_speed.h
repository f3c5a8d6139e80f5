// SPDX-License-Identifier: MIT
//
// How fast this machine reads memory: the limit that decoding is measured against.
#pragma once

#include <cstdint>

namespace kvasir::cli {

struct MemorySpeed {
  uint32_t threads = 0;
  uint64_t buffer_bytes = 0;
  double bytes_per_second = 0;  // the best of several passes
};

// threads: 0 = one per processor this process may use.
MemorySpeed measure_memory_speed(uint32_t threads);

}  // namespace kvasir::cli
