// SPDX-License-Identifier: MIT
//
// Holding back is one question about the end of what has arrived; see utf8_unfinished_tail.
#include "text/stream.h"

#include "text/utf8.h"

namespace kvasir {

std::string_view Utf8Stream::push(std::string_view bytes) {
  buffer_.reserve(buffer_.size() - ready_ + bytes.size());
  buffer_.erase(0, ready_);
  buffer_.append(bytes);
  ready_ = buffer_.size() - utf8_unfinished_tail(buffer_);
  return std::string_view(buffer_).substr(0, ready_);
}

std::string_view Utf8Stream::flush() {
  buffer_.erase(0, ready_);
  ready_ = buffer_.size();
  return buffer_;
}

Status TextStream::push(int32_t token, std::string_view* text) {
  std::string_view bytes;
  KV_RETURN_IF_ERROR(tokenizer_.piece(token, render_special_, &bytes));
  *text = stream_.push(bytes);
  return {};
}

}  // namespace kvasir
