// SPDX-License-Identifier: MIT
//
// Large host blocks from the application's allocator, or the C library's where it gave none.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"

namespace kvasir {

// The C library's aligned memory.
kv_allocator default_allocator();

// One owned block. Movable; empty after a move.
class HostBlock {
 public:
  HostBlock() = default;
  HostBlock(HostBlock&& other) noexcept
      : allocator_(other.allocator_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  HostBlock& operator=(HostBlock&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostBlock();

  // `what` names the block in the sentence of KV_OUT_OF_MEMORY. 0 bytes are fine and give no memory.
  static Status allocate(const kv_allocator& allocator, size_t bytes, const char* what, HostBlock* out);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  kv_allocator allocator_ = {};
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace kvasir
