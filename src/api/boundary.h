// SPDX-License-Identifier: MIT
//
// The C boundary: no exception passes it, the floating-point state of the caller stays outside, structs of any age are
// read and written by the struct_size rule, and handles are what their objects are kept alive by.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include "base/float_state.h"
#include "base/status.h"
#include "kvasir/kvasir.h"

namespace kvasir::api {

// Runs a call's body; whatever happens becomes a status and a sentence.
template <class F>
kv_status guard(kv_error* error, F&& body) noexcept {
  const FloatBoundary floats;
  try {
    const Status status = body();
    return status.to(error);
  } catch (const std::bad_alloc&) {
    return Status::error(KV_OUT_OF_MEMORY, "the host has no memory left").to(error);
  } catch (const std::exception& e) {
    return Status::error(KV_INTERNAL, "internal error: %s", e.what()).to(error);
  } catch (...) {
    return Status::error(KV_INTERNAL, "internal error").to(error);
  }
}

inline constexpr uint32_t kMaxStructBytes = 1u << 16;  // a larger struct_size is a mistake, not a struct

// A caller's struct_size: at least ours (v0.1 is the oldest there is), at most kMaxStructBytes.
Status check_size(const char* name, uint32_t size, size_t own);
// The part of a caller's struct that we do not know: must be zero.
Status check_tail(const char* name, const void* data, uint32_t size, size_t own);

// Copies options in; NULL gives all defaults.
template <class T>
Status copy_in(const char* name, const T* in, T* out) {
  *out = T{};
  if (in == nullptr) return {};
  KV_RETURN_IF_ERROR(check_size(name, in->struct_size, sizeof(T)));
  KV_RETURN_IF_ERROR(check_tail(name, in, in->struct_size, sizeof(T)));
  *out = *in;
  return {};
}

// Before an out struct is written.
template <class T>
Status check_out(const char* name, const T* out) {
  KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "%s is NULL", name);
  return check_size(name, out->struct_size, sizeof(T));
}

// Writes an out struct: our part from `value`, the rest of a newer caller's struct zero, struct_size as it was.
template <class T>
void copy_out(const T& value, T* out) {
  const uint32_t size = out->struct_size;
  *out = value;
  out->struct_size = size;
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
}

// Copies bytes to a caller's buffer; *length always gets the full length.
Status copy_text(std::string_view text, char* buffer, size_t capacity, size_t* length);

}  // namespace kvasir::api
