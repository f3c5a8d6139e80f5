// SPDX-License-Identifier: MIT
//
// Text of a token stream, as it arrives, in whole characters. A token can end inside a character; such bytes are held
// back (at most 3) until later tokens complete the character or show that it can never be. All chunks together are
// exactly the bytes of all tokens. Each chunk is well-formed UTF-8 except for bytes that can never be part of a
// character: they are handed on unchanged, at once. No space is removed at the start (see Tokenizer::decode).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace kvasir {

// Holds back the unfinished end of a byte stream.
class Utf8Stream {
 public:
  // The bytes that are ready now. Valid until the next call on this object.
  std::string_view push(std::string_view bytes);
  // What is still held back: the start of a character that never ended. Then the stream is as new.
  std::string_view flush();

 private:
  std::string buffer_;
  size_t ready_ = 0;  // bytes at the start of buffer_ that were handed out
};

// One thread at a time. The tokenizer must outlive it.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, bool render_special = false)
      : tokenizer_(tokenizer), render_special_(render_special) {}

  // `text` is valid until the next call on this object, and often empty. A token outside the vocabulary changes
  // nothing.
  Status push(int32_t token, std::string_view* text);
  std::string_view flush() { return stream_.flush(); }

 private:
  const Tokenizer& tokenizer_;
  bool render_special_;
  Utf8Stream stream_;
};

}  // namespace kvasir
