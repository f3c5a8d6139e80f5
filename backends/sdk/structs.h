// SPDX-License-Identifier: MIT
//
// Reading and writing the structs of backend.h by their struct_size, stepping arrays by their stride, and the
// overflow-checked arithmetic that sizes from the other side of the boundary need.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sdk/errors.h"

namespace kvasir::sdk {

inline constexpr uint32_t kMaxStructBytes = 65536;  // a larger struct_size is garbage, not a newer host

template <std::unsigned_integral T>
[[nodiscard]] constexpr bool checked_add(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}

template <std::unsigned_integral T>
[[nodiscard]] constexpr bool checked_mul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

[[nodiscard]] constexpr bool range_fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

inline bool all_zero(const void* memory, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  return std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0; });
}

// Copies `from` by the size rule of backend.h: a missing tail reads as zero, a non-zero tail beyond T is unsupported.
// The size must be a multiple of T's alignment, so that no member is cut in half.
template <typename T>
kv_status read_struct(const T* from, const char* name, T* out, kv_error* error) {
  KV_REQUIRE(from != nullptr, error, KV_INVALID_ARGUMENT, "%s is NULL", name);
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof size);
  KV_REQUIRE(size >= sizeof size && size % alignof(T) == 0 && size <= kMaxStructBytes, error, KV_INVALID_ARGUMENT,
             "%s has struct_size %u, which cannot be", name, size);
  if (size > sizeof(T)) {
    KV_REQUIRE(all_zero(reinterpret_cast<const char*>(from) + sizeof(T), size - sizeof(T)), error, KV_UNSUPPORTED,
               "%s is %u bytes long and uses a field beyond the %zu bytes known here", name, size, sizeof(T));
  }
  T copy{};
  std::memcpy(&copy, from, std::min<size_t>(size, sizeof(T)));
  copy.struct_size = sizeof(T);
  *out = copy;
  return KV_OK;
}

// Checks that `out` can be filled by write_struct.
template <typename T>
kv_status check_out_struct(const T* out, const char* name, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "%s is NULL", name);
  KV_REQUIRE(out->struct_size >= sizeof(uint32_t) && out->struct_size <= kMaxStructBytes, error, KV_INVALID_ARGUMENT,
             "%s has struct_size %u, which cannot be", name, out->struct_size);
  return KV_OK;
}

// Fills a struct the caller owns, as much of it as both sides know; the rest of a longer one becomes zero. The caller's
// struct_size stays.
template <typename T>
void write_struct(const T& value, T* out) {
  const uint32_t size = out->struct_size;
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  std::memcpy(bytes, &value, std::min<size_t>(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(bytes + sizeof(T), 0, size - sizeof(T));
  std::memcpy(bytes, &size, sizeof size);
}

// A view of an array of ABI structs whose elements may be longer than the T known here.
template <typename T>
class StrideView {
 public:
  StrideView(const T* data, uint32_t count, uint32_t stride)
      : data_(reinterpret_cast<const char*>(data)), count_(count), stride_(stride) {}

  uint32_t size() const { return count_; }
  T operator[](uint32_t index) const {
    T element;
    std::memcpy(&element, data_ + size_t{index} * stride_, sizeof element);
    return element;
  }

  // NULL, stride, and elements that use fields unknown here.
  kv_status check(const char* name, kv_error* error) const {
    if (count_ == 0) return KV_OK;
    KV_REQUIRE(data_ != nullptr, error, KV_INVALID_ARGUMENT, "%s is NULL, but has %u elements", name, count_);
    KV_REQUIRE(stride_ >= sizeof(T) && stride_ % alignof(T) == 0 && stride_ <= kMaxStructBytes, error,
               KV_INVALID_ARGUMENT, "%s has a stride of %u bytes; an element has %zu", name, stride_, sizeof(T));
    for (uint32_t i = 0; stride_ > sizeof(T) && i < count_; ++i) {
      KV_REQUIRE(all_zero(data_ + size_t{i} * stride_ + sizeof(T), stride_ - sizeof(T)), error, KV_UNSUPPORTED,
                 "element %u of %s uses a field beyond the %zu bytes known here", i, name, sizeof(T));
    }
    return KV_OK;
  }

 private:
  const char* data_;
  uint32_t count_;
  uint32_t stride_;
};

}  // namespace kvasir::sdk
