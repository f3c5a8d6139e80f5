// SPDX-License-Identifier: MIT
#include "api/boundary.h"

namespace kvasir::api {

Status check_size(const char* name, uint32_t size, size_t own) {
  KV_CHECK(size >= own, KV_INVALID_ARGUMENT, "%s: struct_size is %u, this library needs at least %zu", name, size, own);
  KV_CHECK(size % alignof(uint64_t) == 0, KV_INVALID_ARGUMENT, "%s: struct_size is %u, not a multiple of %zu", name,
           size, alignof(uint64_t));
  KV_CHECK(size <= kMaxStructBytes, KV_INVALID_ARGUMENT, "%s: struct_size is %u, more than any version has", name,
           size);
  return {};
}

Status check_tail(const char* name, const void* data, uint32_t size, size_t own) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = own; i < size; i++) {
    KV_CHECK(bytes[i] == 0, KV_UNSUPPORTED, "%s: the caller uses a field at byte %zu that this library does not know",
             name, i);
  }
  return {};
}

Status copy_text(std::string_view text, char* buffer, size_t capacity, size_t* length) {
  KV_CHECK(length != nullptr, KV_INVALID_ARGUMENT, "length is NULL");
  KV_CHECK(buffer != nullptr || capacity == 0, KV_INVALID_ARGUMENT, "the buffer is NULL, its capacity %zu", capacity);
  *length = text.size();
  KV_CHECK(text.size() <= capacity, KV_BUFFER_TOO_SMALL, "%zu bytes do not fit a buffer of %zu", text.size(), capacity);
  if (!text.empty()) std::memcpy(buffer, text.data(), text.size());
  return {};
}

}  // namespace kvasir::api
