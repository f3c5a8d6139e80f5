// SPDX-License-Identifier: MIT
#include "base/status.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace kvasir {

Status Status::verror(kv_status code, const char* format, va_list arguments) {
  char text[sizeof(kv_error::message)];
  if (std::vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  Status status;
  status.code_ = code;
  const size_t bytes = std::strlen(text) + 1;
  status.text_.reset(new (std::nothrow) char[bytes]);
  if (status.text_) std::memcpy(status.text_.get(), text, bytes);
  return status;
}

Status Status::error(kv_status code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Status status = verror(code, format, arguments);
  va_end(arguments);
  return status;
}

Status Status::from(const kv_error& error) {
  return Status::error(error.code, "%.*s", static_cast<int>(sizeof error.message - 1), error.message);
}

kv_status Status::to(kv_error* out) const {
  if (out == nullptr || ok()) return code_;
  // A caller built against a shorter kv_error cannot exist (the struct is frozen); a nonsense size is left alone.
  if (out->struct_size != 0 && out->struct_size < sizeof(kv_error)) return code_;
  out->code = code_;
  std::snprintf(out->message, sizeof out->message, "%s", message());
  return code_;
}

}  // namespace kvasir
