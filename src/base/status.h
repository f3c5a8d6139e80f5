// SPDX-License-Identifier: MIT
//
// Status: the outcome of an internal call, and the two macros every fallible function is written with.
// Success costs nothing; a failure carries a kv_status and one sentence. Never allocates more than that sentence, and
// survives when even this allocation fails (the code stays, a fixed sentence takes the place of the lost one).
#pragma once

#include <cstdarg>
#include <memory>

#include "kvasir/types.h"

namespace kvasir {

class [[nodiscard]] Status {
 public:
  Status() = default;

  // A failure with a printf-style sentence, e.g. error(KV_NOT_FOUND, "no tensor named '%s'", name).
  [[gnu::format(printf, 2, 3)]] static Status error(kv_status code, const char* format, ...);
  static Status verror(kv_status code, const char* format, va_list arguments);
  static Status from(const kv_error& error);

  bool ok() const { return code_ == KV_OK; }
  kv_status code() const { return code_; }
  const char* message() const {
    if (text_) return text_.get();
    return ok() ? "" : "no memory was left, not even for a sentence about it";
  }

  // Fills the caller's error record (may be null) and returns the code.
  kv_status to(kv_error* out) const;

 private:
  kv_status code_ = KV_OK;
  std::unique_ptr<char[]> text_;
};

}  // namespace kvasir

#define KV_RETURN_IF_ERROR(expression)                                          \
  do {                                                                          \
    if (::kvasir::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define KV_CHECK(condition, code, ...)                                     \
  do {                                                                     \
    if (!(condition)) return ::kvasir::Status::error((code), __VA_ARGS__); \
  } while (false)
