// SPDX-License-Identifier: MIT
//
// Takes a file apart and puts it together again. What is damaged beyond that is left to mutations of bytes.
#include "fuzz/gguf_document.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "model/types.h"

namespace kvasir::fuzz {
namespace {

constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;
constexpr uint64_t kMostData = uint64_t{1} << 16;

// Takes fields off the front; false when they are not there.
class Cursor {
 public:
  Cursor(const uint8_t* data, size_t size) : all_(reinterpret_cast<const char*>(data), size), rest_(all_) {}

  template <class T>
  bool take(T* out) {
    std::string bytes;
    if (!take(sizeof(T), &bytes)) return false;
    std::memcpy(out, bytes.data(), sizeof(T));
    return true;
  }
  bool take(uint64_t bytes, std::string* out) {
    if (bytes > rest_.size()) return false;
    out->append(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return true;
  }
  // A length and that many bytes, both appended.
  bool take_string(std::string* out) {
    uint64_t bytes = 0;
    if (!take(&bytes)) return false;
    out->append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    return take(bytes, out);
  }
  bool take_name(std::string* out) {
    uint64_t bytes = 0;
    return take(&bytes) && take(bytes, out);
  }
  size_t position() const { return all_.size() - rest_.size(); }
  size_t size() const { return rest_.size(); }
  std::string from(uint64_t offset, uint64_t bytes) const {
    return std::string(all_.substr(std::min<uint64_t>(offset, all_.size()), bytes));
  }

 private:
  std::string_view all_;
  std::string_view rest_;
};

template <class T>
void put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool take_value(Cursor* cursor, uint32_t type, std::string* out) {
  if (type == kString) return cursor->take_string(out);
  if (type != kArray) return scalar_bytes(type) > 0 && cursor->take(scalar_bytes(type), out);
  uint32_t element = 0;
  uint64_t count = 0;
  if (!cursor->take(&element) || !cursor->take(&count) || element == kArray || count > cursor->size()) return false;
  put(out, element);
  put(out, count);
  for (uint64_t i = 0; i < count; ++i) {
    if (!take_value(cursor, element, out)) return false;
  }
  return true;
}

uint64_t data_bytes(uint32_t gguf_type, const std::vector<uint64_t>& dims) {
  uint64_t bytes = 0;
  const uint32_t type = type_from_gguf(gguf_type);
  if (type == KV_TYPE_DEFAULT || dims.empty() || !row_bytes(type, dims[0], &bytes)) return 0;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(bytes, dims[i], &bytes)) return 0;
  }
  return bytes;
}

uint64_t aligned(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

uint64_t scalar_bytes(uint32_t type) {
  constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

void GgufTensor::fit_data() {
  const uint64_t bytes = data_bytes(type, dims);
  if (bytes <= kMostData) data.resize(bytes, '\x11');
}

uint64_t GgufDocument::alignment() const {
  for (const GgufKey& key : keys) {
    uint32_t value = 0;
    if (key.name != "general.alignment" || key.payload.size() != sizeof value) continue;
    std::memcpy(&value, key.payload.data(), sizeof value);
    if (value > 0 && value <= 1024) return value;
  }
  return 32;
}

bool GgufDocument::parse(const uint8_t* data, size_t size, GgufDocument* out) {
  Cursor cursor(data, size);
  GgufDocument document;
  uint32_t magic = 0;
  uint64_t tensors = 0;
  uint64_t keys = 0;
  if (!cursor.take(&magic) || !cursor.take(&document.version) || !cursor.take(&tensors) || !cursor.take(&keys)) {
    return false;
  }
  if (tensors > size || keys > size) return false;
  for (uint64_t i = 0; i < keys; ++i) {
    GgufKey key;
    if (!cursor.take_name(&key.name) || !cursor.take(&key.type)) return false;
    if (!take_value(&cursor, key.type, &key.payload)) return false;
    document.keys.push_back(std::move(key));
  }
  std::vector<uint64_t> offsets(tensors);
  for (uint64_t i = 0; i < tensors; ++i) {
    GgufTensor tensor;
    uint32_t dims = 0;
    if (!cursor.take_name(&tensor.name) || !cursor.take(&dims) || dims > 8) return false;
    tensor.dims.resize(dims);
    for (uint64_t& dim : tensor.dims) {
      if (!cursor.take(&dim)) return false;
    }
    if (!cursor.take(&tensor.type) || !cursor.take(&offsets[i])) return false;
    document.tensors.push_back(std::move(tensor));
  }
  const uint64_t start = aligned(cursor.position(), document.alignment());
  for (uint64_t i = 0; i < tensors; ++i) {
    GgufTensor& tensor = document.tensors[i];
    tensor.data = cursor.from(start + offsets[i], std::min<uint64_t>(data_bytes(tensor.type, tensor.dims), size));
  }
  *out = std::move(document);
  return true;
}

std::string GgufDocument::write() const {
  std::string file = "GGUF";
  put(&file, version);
  put(&file, static_cast<uint64_t>(tensors.size()) + extra_tensors);
  put(&file, static_cast<uint64_t>(keys.size()) + extra_keys);
  for (const GgufKey& key : keys) {
    put(&file, static_cast<uint64_t>(key.name.size()));
    file += key.name;
    put(&file, key.type);
    file += key.payload;
  }
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    put(&file, static_cast<uint64_t>(tensor.name.size()));
    file += tensor.name;
    put(&file, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(&file, dim);
    put(&file, tensor.type);
    put(&file, offset + tensor.displaced);
    offset += aligned(tensor.data.size(), alignment());
  }
  for (const GgufTensor& tensor : tensors) {
    file.resize(aligned(file.size(), alignment()));
    file += tensor.data;
  }
  return file;
}

std::vector<std::string> array_elements(const std::string& payload) {
  std::vector<std::string> elements;
  Cursor cursor(reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
  uint32_t element = 0;
  uint64_t count = 0;
  if (!cursor.take(&element) || !cursor.take(&count)) return elements;
  for (std::string value; cursor.size() > 0 && take_value(&cursor, element, &value); value.clear()) {
    elements.push_back(value);
  }
  return elements;
}

std::string array_payload(uint32_t element_type, uint64_t count, const std::vector<std::string>& elements) {
  std::string payload;
  put(&payload, element_type);
  put(&payload, count);
  for (const std::string& element : elements) payload += element;
  return payload;
}

}  // namespace kvasir::fuzz
