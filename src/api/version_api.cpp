// SPDX-License-Identifier: MIT
#include "kvasir/kvasir.h"
#include "model/types.h"
#include "runtime/cancel.h"

#include <new>

#include "api/boundary.h"

extern "C" {

uint32_t kv_version(void) { return KV_VERSION_MAJOR << 16 | KV_VERSION_MINOR << 8 | KV_VERSION_PATCH; }

const char* kv_status_name(kv_status status) {
  static constexpr const char* kNames[] = {
      "KV_OK",           "KV_INVALID_ARGUMENT", "KV_NOT_FOUND",        "KV_UNSUPPORTED",  "KV_OUT_OF_MEMORY",
      "KV_CONTEXT_FULL", "KV_CANCELLED",        "KV_DEVICE_LOST",      "KV_INCOMPATIBLE", "KV_DENIED",
      "KV_INTERNAL",     "KV_CORRUPT",          "KV_BUFFER_TOO_SMALL", "KV_BUSY",         "KV_BAD_LOGITS",
      "KV_IO",           "KV_TIMEOUT"};
  constexpr auto count = static_cast<kv_status>(sizeof kNames / sizeof kNames[0]);
  return status >= 0 && status < count ? kNames[status] : "KV_UNKNOWN";
}

const char* kv_type_name(uint32_t type) {
  const kvasir::TypeInfo* info = kvasir::type_info(type);
  return info == nullptr ? "?" : info->name;
}

kv_status kv_cancel_create(kv_cancel** out, kv_error* error) {
  return kvasir::api::guard(error, [&]() -> kvasir::Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    *out = new kv_cancel;
    return {};
  });
}

void kv_cancel_set(kv_cancel* cancel) {
  if (cancel != nullptr) __atomic_store_n(&cancel->word, 1U, __ATOMIC_RELAXED);
}

void kv_cancel_reset(kv_cancel* cancel) {
  if (cancel != nullptr) __atomic_store_n(&cancel->word, 0U, __ATOMIC_RELAXED);
}

int32_t kv_cancel_is_set(const kv_cancel* cancel) { return kvasir::stop_requested(kvasir::stop_word(cancel)) ? 1 : 0; }

void kv_cancel_release(kv_cancel* cancel) { delete cancel; }

}  // extern "C"
