// SPDX-License-Identifier: MIT
//
// A kvb_api as the loader wants it, with one device and nothing behind it: every call about weights, caches, programs
// and queues says KV_UNSUPPORTED. The plugins beside this file, and the tests' built-in backends, spoil it in one point
// each.
#pragma once

#include <cstdio>
#include <type_traits>

#include "kvasir/backend.h"

struct kvb_instance {
  kvb_host host;
};

namespace stub {

// Becomes any function pointer of the table.
struct Unsupported {
  template <class R, class... A>
  using Function = R (*)(A...);

  template <class R, class... A>
  operator Function<R, A...>() const {
    return [](A...) -> R {
      if constexpr (std::is_same_v<R, kv_status>) return KV_UNSUPPORTED;
      if constexpr (std::is_pointer_v<R>) return nullptr;
    };
  }
};

inline kv_status instance_create(const kvb_host* host, kvb_instance** out, kv_error*) {
  *out = new kvb_instance{*host};
  return KV_OK;
}

inline void instance_destroy(kvb_instance* instance) { delete instance; }

inline kv_status device_count(kvb_instance*, uint32_t* out, char*, size_t, kv_error*) {
  *out = 1;
  return KV_OK;
}

inline kv_status device_info(kvb_instance*, uint32_t index, kvb_device_info* out, kv_error*) {
  out->kind = KVB_DEVICE_CPU;
  std::snprintf(out->name, sizeof out->name, "stub device %u", index);
  std::snprintf(out->driver, sizeof out->driver, "stub 1.0");
  out->memory_total = 1000;
  out->memory_available = 500;
  return KV_OK;
}

inline kvb_api table(const char* name) {
  constexpr Unsupported none;
  kvb_api api = {};
  api.struct_size = sizeof api;
  api.abi_version = KVB_ABI_VERSION;
  api.name = name;
  api.version = "1.2.3";
  api.instance_create = instance_create;
  api.instance_destroy = instance_destroy;
  api.device_count = device_count;
  api.device_info = device_info;
  api.device_open = none;
  api.device_close = none;
  api.device_query = none;
  api.device_variant = none;
  api.weight_memory = none;
  api.weight_create = none;
  api.weight_destroy = none;
  api.cache_memory = none;
  api.cache_create = none;
  api.cache_destroy = none;
  api.cache_resize = none;
  api.cache_copy_rows = none;
  api.cache_poison_page = none;
  api.cache_read_rows = none;
  api.cache_write_rows = none;
  api.program_check = none;
  api.program_memory = none;
  api.program_compile = none;
  api.program_destroy = none;
  api.queue_create = none;
  api.queue_destroy = none;
  api.queue_submit = none;
  api.queue_wait = none;
  api.extension = none;
  return api;
}

}  // namespace stub

#define KV_STUB_ENTRY extern "C" __attribute__((visibility("default"))) const kvb_api* kv_backend_query_v0
