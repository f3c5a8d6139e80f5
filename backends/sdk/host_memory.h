// SPDX-License-Identifier: MIT
//
// Large blocks of host memory: taken from the host's allocator, counted to the byte, given back by a destructor. Small
// bookkeeping may use std containers instead; sizes that grow with the model, the cache or the step belong here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sdk/errors.h"

namespace kvasir::sdk {

// The host's allocator and what is taken from it now. Thread-safe; outlives its blocks.
class HostMemory {
 public:
  explicit HostMemory(const kv_allocator& allocator) : allocator_(allocator) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class HostBlock;
  kv_allocator allocator_;
  std::atomic<uint64_t> used_{0};
};

// One block; empty when default-constructed or of size 0.
class HostBlock {
 public:
  static constexpr size_t kAlign = 64;

  HostBlock() = default;
  ~HostBlock() { reset(); }
  HostBlock(HostBlock&& other) noexcept { swap(other); }
  HostBlock& operator=(HostBlock&& other) noexcept {
    HostBlock(std::move(other)).swap(*this);
    return *this;
  }

  // Replaces *out by a block of `size` uninitialised bytes for `what` ("the cache"); *out stays when there is none.
  static kv_status allocate(HostMemory& memory, uint64_t size, const char* what, HostBlock* out, kv_error* error,
                            size_t align = kAlign) {
    HostBlock block;
    if (size > 0) {
      void* data = nullptr;
      if (size <= PTRDIFF_MAX) data = memory.allocator_.alloc(memory.allocator_.user, static_cast<size_t>(size), align);
      KV_REQUIRE(data != nullptr, error, KV_OUT_OF_MEMORY, "the host has no %llu bytes for %s",
                 static_cast<unsigned long long>(size), what);
      memory.used_.fetch_add(size, std::memory_order_relaxed);
      block.memory_ = &memory;
      block.data_ = data;
      block.size_ = static_cast<size_t>(size);
      block.align_ = align;
    }
    *out = std::move(block);
    return KV_OK;
  }

  void reset() {
    if (data_ == nullptr) return;
    memory_->allocator_.release(memory_->allocator_.user, data_, size_, align_);
    memory_->used_.fetch_sub(size_, std::memory_order_relaxed);
    data_ = nullptr;
    size_ = 0;
  }

  void swap(HostBlock& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(align_, other.align_);
  }

  size_t size() const { return size_; }
  std::byte* bytes() const { return static_cast<std::byte*>(data_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  HostMemory* memory_ = nullptr;
  void* data_ = nullptr;
  size_t size_ = 0;
  size_t align_ = kAlign;
};

}  // namespace kvasir::sdk
