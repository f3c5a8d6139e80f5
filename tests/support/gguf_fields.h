// SPDX-License-Identifier: MIT
//
// Where the numbers of a GGUF file's header lie: counts, lengths, types, dimensions, offsets and scalar values. For
// tests that damage them one by one; the file itself must be right.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace kvasir::testing {

struct GgufField {
  size_t at = 0;
  size_t bytes = 0;  // 4 or 8
  std::string what;
};

// Walks the header once.
class GgufFields {
 public:
  explicit GgufFields(const std::vector<uint8_t>& file) : file_(file) {
    position_ = 4;
    field(4, "version");
    const uint64_t tensors = field(8, "number of tensors");
    const uint64_t keys = field(8, "number of keys");
    for (uint64_t i = 0; i < keys; ++i) {
      const std::string name = text("length of a key's name");
      value(static_cast<uint32_t>(field(4, "type of " + name)), name);
    }
    for (uint64_t i = 0; i < tensors; ++i) {
      const std::string name = text("length of a tensor's name");
      const uint64_t dims = field(4, "dimensions of " + name);
      for (uint64_t d = 0; d < dims; ++d) field(8, "dimension of " + name);
      field(4, "type of " + name);
      field(8, "offset of " + name);
    }
  }

  const std::vector<GgufField>& all() const { return fields_; }
  size_t header_bytes() const { return position_; }

 private:
  uint64_t field(size_t bytes, std::string what) {
    uint64_t number = 0;
    std::memcpy(&number, file_.data() + position_, bytes);
    fields_.push_back({position_, bytes, std::move(what)});
    position_ += bytes;
    return number;
  }
  std::string text(const std::string& what) {
    const uint64_t bytes = field(8, what);
    const std::string content(reinterpret_cast<const char*>(file_.data()) + position_, bytes);
    position_ += bytes;
    return content;
  }
  void value(uint32_t type, const std::string& name) {
    constexpr uint32_t kString = 8;
    constexpr uint32_t kArray = 9;
    if (type == kString) {
      text("length of " + name);
    } else if (type == kArray) {
      const auto element = static_cast<uint32_t>(field(4, "element type of " + name));
      const uint64_t count = field(8, "count of " + name);
      for (uint64_t i = 0; i < count; ++i) value(element, "an element of " + name);
    } else {
      constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
      if (kBytes[type] >= 4) {
        field(kBytes[type], name);
      } else {
        position_ += kBytes[type];
      }
    }
  }

  const std::vector<uint8_t>& file_;
  size_t position_ = 0;
  std::vector<GgufField> fields_;
};

}  // namespace kvasir::testing
