// SPDX-License-Identifier: MIT
//
// GgufReader: a cursor over the head of a GGUF file. It buffers as much of the file as has been asked for, so a header
// of unknown length is read once and a 40 GB file costs its header only. Every step is checked against the file's size
// before memory is reserved. Internal to the GGUF parser.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/source.h"

namespace kvasir {

class GgufReader {
 public:
  explicit GgufReader(const ByteSource& source) : source_(source) {}

  uint64_t position() const { return position_; }
  uint64_t bytes_left() const { return source_.size() - position_; }
  const uint8_t* data(uint64_t offset) const { return buffer_.data() + offset; }  // of what has been passed
  std::string_view text(uint64_t offset, uint64_t bytes) const {
    return {reinterpret_cast<const char*>(buffer_.data() + offset), bytes};
  }

  // What is being read, for the sentence when the file ends: "the value of key 'x'". The name is what lies at
  // [name_offset, name_offset + name_bytes), none when that is empty.
  void at(const char* part, uint64_t name_offset = 0, uint64_t name_bytes = 0) {
    part_ = part;
    name_offset_ = name_offset;
    name_bytes_ = name_bytes;
  }

  // "the value of key 'x'"
  std::string place() const;

  // Passes `bytes` bytes.
  Status skip(uint64_t bytes) {
    if (bytes > buffer_.size() - position_) KV_RETURN_IF_ERROR(fill(bytes));
    position_ += bytes;
    return {};
  }

  template <typename T>
  Status read(T* out) {
    KV_RETURN_IF_ERROR(skip(sizeof(T)));
    std::memcpy(out, buffer_.data() + position_ - sizeof(T), sizeof(T));  // files and supported machines: little-endian
    return {};
  }

  // A length and that many bytes; the bytes begin at *offset.
  Status read_string(uint64_t* offset, uint64_t* bytes) {
    KV_RETURN_IF_ERROR(read(bytes));
    *offset = position_;
    return skip(*bytes);
  }

  // What has been passed up to `end`, moved out; ends the use of this reader.
  std::vector<uint8_t> take(uint64_t end);

 private:
  Status fill(uint64_t bytes);

  const ByteSource& source_;
  std::vector<uint8_t> buffer_;  // the first bytes of the source
  uint64_t position_ = 0;
  const char* part_ = "the header";
  uint64_t name_offset_ = 0;
  uint64_t name_bytes_ = 0;
};

}  // namespace kvasir
