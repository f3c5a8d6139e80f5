// SPDX-License-Identifier: MIT
#include "base/status.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace kvasir {

namespace {

// What was cut off must not begin in the middle of a UTF-8 character.
void drop_unfinished_character(char* text) {
  const size_t end = std::strlen(text);
  size_t begin = end;
  while (begin > 0 && end - begin < 3 && (text[begin - 1] & 0xC0) == 0x80) begin--;
  if (begin == 0) return;
  const auto lead = static_cast<unsigned char>(text[begin - 1]);
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (bytes > end - begin + 1) text[begin - 1] = '\0';
}

}  // namespace

Status Status::verror(kv_status code, const char* format, va_list arguments) {
  char text[sizeof(kv_error::message)];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  if (length < 0) text[0] = '\0';
  if (length >= static_cast<int>(sizeof text)) drop_unfinished_character(text);
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
