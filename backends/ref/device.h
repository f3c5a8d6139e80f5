// SPDX-License-Identifier: MIT
//
// Instance and device. The instance keeps the host's services; the device owns the account of what is taken from the
// host's allocator. This backend has exactly one device, always there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kvasir/backend.h"
#include "sdk/cache_layout.h"
#include "sdk/host_memory.h"
#include "sdk/types.h"

namespace kvasir::ref {

inline constexpr uint64_t kWeightTypes = ((uint64_t{1} << sdk::kTypeCount) - 1) & ~sdk::type_bit(KV_TYPE_DEFAULT);
inline constexpr uint64_t kCacheTypes = sdk::type_bit(KV_TYPE_F32) | sdk::type_bit(KV_TYPE_F16) |
                                        sdk::type_bit(KV_TYPE_BF16) | sdk::type_bit(KV_TYPE_Q8_0) |
                                        sdk::type_bit(KV_TYPE_Q4_0);
inline constexpr uint32_t kPageTokens = 16;
inline constexpr uint32_t kBatchTokens = 32;
inline constexpr sdk::CacheLimits kCacheLimits{kCacheTypes, kCacheTypes, 1, 4096};

struct Instance {
  kvb_host host;
};

struct Device {
  explicit Device(const kv_allocator& allocator) : memory(allocator) {}
  sdk::HostMemory memory;
};

kv_status instance_create(const kvb_host* host, kvb_instance** out, kv_error* error);
void instance_destroy(kvb_instance* instance);
kv_status device_count(kvb_instance* instance, uint32_t* out, char* reason, size_t capacity, kv_error* error);
kv_status device_info(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error);
kv_status device_open(kvb_instance* instance, uint32_t index, const kvb_device_options* options, kvb_device** out,
                      kv_error* error);
void device_close(kvb_device* device);
kv_status device_query(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error);
const char* device_variant(kvb_device* device);

}  // namespace kvasir::ref
