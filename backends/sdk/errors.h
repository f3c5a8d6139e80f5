// SPDX-License-Identifier: MIT
//
// Failing across the C boundary: fill a kv_error with a sentence, return its status, and keep exceptions inside.
// A plugin writes every fallible function as a chain of KV_REQUIRE and KV_TRY, wrapped once, at the boundary, in
// guard(). Sentences carry the offending value; none of them prints a floating-point number, so no locale can change
// them.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "kvasir/types.h"

namespace kvasir::sdk {

// The length of `text` without a UTF-8 character that was cut in the middle.
inline size_t whole_characters(const char* text, size_t length) {
  size_t start = length;
  while (start > 0 && (static_cast<unsigned char>(text[start - 1]) & 0xc0) == 0x80) --start;
  if (start == 0) return length;
  const auto lead = static_cast<unsigned char>(text[start - 1]);
  const size_t needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return length - (start - 1) < needed ? start - 1 : length;
}

inline kv_status vfail(kv_error* error, kv_status code, const char* format, va_list arguments) {
  if (error == nullptr) return code;
  const size_t size =
      error->struct_size == 0 ? sizeof(kv_error) : std::min<size_t>(error->struct_size, sizeof(kv_error));
  const size_t head = offsetof(kv_error, message);
  if (size < head) return code;
  error->code = code;
  if (size == head) return code;
  const size_t capacity = size - head;
  const int written = std::vsnprintf(error->message, capacity, format, arguments);
  if (written < 0) error->message[0] = '\0';
  if (written >= 0 && static_cast<size_t>(written) >= capacity) {
    error->message[whole_characters(error->message, capacity - 1)] = '\0';
  }
  return code;
}

// Fills `error` (may be null) with a printf-style sentence and returns `code`.
[[gnu::format(printf, 3, 4)]] inline kv_status fail(kv_error* error, kv_status code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfail(error, code, format, arguments);
  va_end(arguments);
  return code;
}

// The exception barrier: runs `body`, which returns a kv_status, and turns whatever it throws into one.
template <typename Body>
kv_status guard(kv_error* error, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(error, KV_OUT_OF_MEMORY, "the backend ran out of host memory");
  } catch (const std::length_error&) {
    return fail(error, KV_OUT_OF_MEMORY, "the backend was asked for more than a container can hold");
  } catch (const std::exception& exception) {
    return fail(error, KV_INTERNAL, "the backend failed unexpectedly: %s", exception.what());
  } catch (...) {
    return fail(error, KV_INTERNAL, "the backend failed unexpectedly");
  }
}

}  // namespace kvasir::sdk

// Returns from the enclosing function, which returns a kv_status, when the expression fails.
#define KV_TRY(expression)                                                        \
  do {                                                                            \
    if (const kv_status status_ = (expression); status_ != KV_OK) return status_; \
  } while (false)

// KV_REQUIRE(count > 0, error, KV_INVALID_ARGUMENT, "count is %u", count)
#define KV_REQUIRE(condition, error, code, ...)                                 \
  do {                                                                          \
    if (!(condition)) return ::kvasir::sdk::fail((error), (code), __VA_ARGS__); \
  } while (false)
