// SPDX-License-Identifier: MIT
#include "base/memory.h"

#include <cstdlib>

namespace kvasir {

namespace {

constexpr size_t kBlockAlign = 64;

void* c_alloc(void*, size_t size, size_t align) {
  void* memory = nullptr;
  const size_t at_least_pointer = align < sizeof(void*) ? sizeof(void*) : align;
  return posix_memalign(&memory, at_least_pointer, size == 0 ? 1 : size) == 0 ? memory : nullptr;
}

void c_release(void*, void* memory, size_t, size_t) { std::free(memory); }

}  // namespace

kv_allocator default_allocator() { return {nullptr, c_alloc, c_release}; }

HostBlock::~HostBlock() {
  if (data_ != nullptr) allocator_.release(allocator_.user, data_, bytes_, kBlockAlign);
}

Status HostBlock::allocate(const kv_allocator& allocator, size_t bytes, const char* what, HostBlock* out) {
  HostBlock block;
  block.allocator_ = allocator;
  if (bytes != 0) {
    block.data_ = allocator.alloc(allocator.user, bytes, kBlockAlign);
    KV_CHECK(block.data_ != nullptr, KV_OUT_OF_MEMORY, "%s: the host has no %zu bytes left", what, bytes);
    block.bytes_ = bytes;
  }
  *out = std::move(block);
  return {};
}

}  // namespace kvasir
