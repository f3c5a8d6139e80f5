// SPDX-License-Identifier: MIT
//
// Replaces operator new and delete by ones that count.
#include "support/allocation_meter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> total{0};

}  // namespace

size_t kvasir::testing::allocated_bytes() { return total; }

void* operator new(std::size_t bytes) {
  total += bytes;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
