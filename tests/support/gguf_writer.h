// SPDX-License-Identifier: MIT
//
// Writes GGUF files into memory, right ones (GgufWriter) and wrong ones (RawBytes). For tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf.h"
#include "model/types.h"
#include "model/weights.h"

namespace kvasir::testing {

// Appends the format's primitives, whatever they say.
class RawBytes {
 public:
  template <typename T>
  RawBytes& number(T value) {
    return raw(&value, sizeof value);
  }
  RawBytes& u32(uint64_t value) { return number(static_cast<uint32_t>(value)); }
  RawBytes& u64(uint64_t value) { return number(value); }
  RawBytes& letters(std::string_view text) { return raw(text.data(), text.size()); }
  RawBytes& string(std::string_view text) { return u64(text.size()).letters(text); }
  RawBytes& header(uint32_t version, uint64_t tensors, uint64_t keys) {
    return letters("GGUF").u32(version).u64(tensors).u64(keys);
  }
  RawBytes& append(const std::vector<uint8_t>& bytes) { return raw(bytes.data(), bytes.size()); }
  RawBytes& pad_to(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }

  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  RawBytes& raw(const void* data, size_t bytes) {
    const size_t end = bytes_.size();
    bytes_.resize(end + bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + end, data, bytes);
    return *this;
  }

  std::vector<uint8_t> bytes_;
};

class GgufWriter {
 public:
  GgufWriter& u16(std::string_view key, uint16_t value) { return scalar(key, GgufType::u16, value); }
  GgufWriter& u32(std::string_view key, uint32_t value) { return scalar(key, GgufType::u32, value); }
  GgufWriter& i32(std::string_view key, int32_t value) { return scalar(key, GgufType::i32, value); }
  GgufWriter& f32(std::string_view key, float value) { return scalar(key, GgufType::f32, value); }
  GgufWriter& boolean(std::string_view key, bool value) {
    return scalar(key, GgufType::boolean, static_cast<uint8_t>(value));
  }
  GgufWriter& string(std::string_view key, std::string_view value) {
    begin(key, GgufType::string).string(value);
    return *this;
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    RawBytes& raw = begin_array(key, GgufType::string, values.size());
    for (const std::string& value : values) raw.string(value);
    return *this;
  }
  GgufWriter& u32s(std::string_view key, const std::vector<uint32_t>& values) {
    return numbers(key, GgufType::u32, values);
  }
  GgufWriter& i32s(std::string_view key, const std::vector<int32_t>& values) {
    return numbers(key, GgufType::i32, values);
  }
  GgufWriter& f32s(std::string_view key, const std::vector<float>& values) {
    return numbers(key, GgufType::f32, values);
  }
  template <typename T>
  GgufWriter& scalar(std::string_view key, GgufType type, T value) {
    begin(key, type).number(value);
    return *this;
  }

  GgufWriter& tensor(std::string name, uint32_t type, std::vector<uint64_t> dims, std::vector<uint8_t> data) {
    tensors_.push_back({std::move(name), type, std::move(dims), std::move(data)});
    return *this;
  }

  GgufWriter& version(uint32_t version) {
    version_ = version;
    return *this;
  }
  // Also writes the key, when it is not the default.
  GgufWriter& alignment(uint32_t alignment) {
    alignment_ = alignment;
    return u32("general.alignment", alignment);
  }

  // Length of the part before the tensors' data.
  size_t header_bytes() const { return header().size(); }

  std::vector<uint8_t> bytes() const {
    RawBytes file = header();
    file.pad_to(alignment_);
    for (const Tensor& tensor : tensors_) file.append(tensor.data).pad_to(alignment_);
    return file.bytes();
  }

 private:
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> dims;
    std::vector<uint8_t> data;
  };

  RawBytes& begin(std::string_view key, GgufType type) {
    ++keys_;
    return metadata_.string(key).u32(static_cast<uint32_t>(type));
  }
  RawBytes& begin_array(std::string_view key, GgufType element, size_t count) {
    return begin(key, GgufType::array).u32(static_cast<uint32_t>(element)).u64(count);
  }
  template <typename T>
  GgufWriter& numbers(std::string_view key, GgufType element, const std::vector<T>& values) {
    RawBytes& raw = begin_array(key, element, values.size());
    for (const T value : values) raw.number(value);
    return *this;
  }

  RawBytes header() const {
    RawBytes file;
    file.header(version_, tensors_.size(), keys_).append(metadata_.bytes());
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      file.string(tensor.name).u32(tensor.dims.size());
      for (const uint64_t dim : tensor.dims) file.u64(dim);
      file.u32(type_info(tensor.type)->gguf_id).u64(offset);
      offset += (tensor.data.size() + alignment_ - 1) / alignment_ * alignment_;
    }
    return file;
  }

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  uint64_t keys_ = 0;
  RawBytes metadata_;
  std::vector<Tensor> tensors_;
};

// A borrowed source over `bytes`, which must outlive it.
inline std::shared_ptr<const ByteSource> source_of(const std::vector<uint8_t>& bytes) {
  std::shared_ptr<const ByteSource> source;
  (void)make_memory_source(bytes, MemoryOwnership::borrow, &source).ok();
  return source;
}

inline Status parse_bytes(const std::vector<uint8_t>& bytes, std::shared_ptr<const Gguf>* out) {
  return parse_gguf({source_of(bytes)}, out);
}

inline void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace kvasir::testing
