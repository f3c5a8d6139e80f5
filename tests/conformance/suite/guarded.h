// SPDX-License-Identifier: MIT
//
// Memory whose last byte is the last of a page, with a page behind it that nobody may touch: reading past an array ends
// the process, which the suite reports.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <vector>

namespace kvasir::conformance {

class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    for (const Block& block : blocks_) munmap(block.start, block.size);
  }

  // A copy of the elements; NULL stays NULL.
  template <typename T>
  T* copy(const T* data, size_t count) {
    if (data == nullptr) return nullptr;
    const size_t bytes = count * sizeof(T), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size = (bytes + page - 1) / page * page + page;
    void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::runtime_error("mmap failed");
    blocks_.push_back({start, size});
    auto* const guard = static_cast<unsigned char*>(start) + size - page;
    std::memset(start, 0xff, size - page);  // NaN in front of the data
    mprotect(guard, page, PROT_NONE);
    std::memcpy(guard - bytes, data, bytes);
    return reinterpret_cast<T*>(guard - bytes);
  }

 private:
  struct Block {
    void* start;
    size_t size;
  };
  std::vector<Block> blocks_;
};

}  // namespace kvasir::conformance
