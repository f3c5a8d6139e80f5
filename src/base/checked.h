// SPDX-License-Identifier: MIT
//
// Overflow-checked arithmetic for sizes that come from files and callers. No allocation, no errors of its own: each
// function says whether the exact result fits, and writes it only then.
#pragma once

#include <concepts>
#include <cstdint>

namespace kvasir {

template <std::integral T>
[[nodiscard]] constexpr bool checked_add(T a, T b, T* out) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

template <std::integral T>
[[nodiscard]] constexpr bool checked_mul(T a, T b, T* out) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

// Rounds up to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr bool checked_align(uint64_t value, uint64_t alignment, uint64_t* out) {
  uint64_t padded = 0;
  if (!checked_add(value, alignment - 1, &padded)) return false;
  *out = padded & ~(alignment - 1);
  return true;
}

// Whether [offset, offset + bytes) lies inside [0, size).
[[nodiscard]] constexpr bool range_fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace kvasir
