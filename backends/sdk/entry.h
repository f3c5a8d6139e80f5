// SPDX-License-Identifier: MIT
//
// KVB_DEFINE_BACKEND(name, api) writes the one exported function of a plugin. `name` is a bare word ("cpu" without the
// quotes), `api` a static const kvb_api. With KVB_STATIC the function is called kv_backend_query_v0_<name>, so that
// several backends can live in one binary. Nobody writes negotiation by hand.
#pragma once

#include "kvasir/backend.h"
#include "sdk/errors.h"
#include "sdk/structs.h"

namespace kvasir::sdk {

// Reads and judges the host table; used by the entry function and, for its own copy, by instance_create.
inline kv_status read_host(const kvb_host* host, kvb_host* out, kv_error* error) {
  KV_REQUIRE(host != nullptr, error, KV_INVALID_ARGUMENT, "host is NULL");
  // The draft revision is judged first: with another one nothing else in the table can be trusted.
  KV_REQUIRE(host->struct_size >= offsetof(kvb_host, log), error, KV_INVALID_ARGUMENT,
             "host has struct_size %u, which cannot be", host->struct_size);
  KV_REQUIRE(host->abi_version == KVB_ABI_VERSION, error, KV_INCOMPATIBLE,
             "the plugin is built for backend ABI %u draft %u, the host has %u draft %u", KVB_ABI_VERSION >> 16,
             KVB_ABI_VERSION & 0xffffu, host->abi_version >> 16, host->abi_version & 0xffffu);
  kvb_host copy{};
  KV_TRY(read_struct(host, "host", &copy, error));
  KV_REQUIRE(copy.allocator.alloc != nullptr && copy.allocator.release != nullptr, error, KV_INVALID_ARGUMENT,
             "the host table has no allocator");
  *out = copy;
  return KV_OK;
}

inline const kvb_api* negotiate(const kvb_host* host, const kvb_api* api, kv_error* error) noexcept {
  kvb_host copy{};
  return read_host(host, &copy, error) == KV_OK ? api : nullptr;
}

}  // namespace kvasir::sdk

#ifdef KVB_STATIC
#define KVB_ENTRY_NAME(name) kv_backend_query_v0_##name
#else
#define KVB_ENTRY_NAME(name) kv_backend_query_v0
#endif

#define KVB_DEFINE_BACKEND(name, api)                                                     \
  extern "C" __attribute__((visibility("default")))                                       \
  const kvb_api* KVB_ENTRY_NAME(name)(const kvb_host* host, kv_error* error);             \
  extern "C" const kvb_api* KVB_ENTRY_NAME(name)(const kvb_host* host, kv_error* error) { \
    return ::kvasir::sdk::negotiate(host, &(api), error);                                 \
  }
