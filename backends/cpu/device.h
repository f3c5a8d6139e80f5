// SPDX-License-Identifier: MIT
//
// The instance and the one device of this backend: the host's services, the chosen kernels, the memory counter.
#pragma once

#include <cstdint>

#include "kvasir/backend.h"
#include "sdk/cache_layout.h"
#include "sdk/host_memory.h"
#include "simd/attention.h"
#include "simd/kernels.h"

namespace kvasir::cpu {

struct Instance {
  kvb_host host;

  [[gnu::format(printf, 3, 4)]] void log(int32_t level, const char* format, ...) const;
};

struct Device {
  Device(const Instance& owner, const Kernels& chosen, const AttentionKernels& attention_kernels, uint32_t threads)
      : instance(owner),
        kernels(chosen),
        attention(attention_kernels),
        default_threads(threads),
        memory(owner.host.allocator) {}

  const Instance& instance;
  const Kernels& kernels;
  const AttentionKernels& attention;
  const uint32_t default_threads;  // processors this process may use; no queue has more members
  sdk::HostMemory memory;
};

constexpr uint32_t kPreferredPageTokens = 256;  // one attention split
constexpr uint32_t kMaxPageTokens = 4096;
constexpr uint32_t kPreferredBatchTokens = 512;

inline constexpr uint64_t kCacheTypes =
    sdk::type_bit(KV_TYPE_F32) | sdk::type_bit(KV_TYPE_F16) | sdk::type_bit(KV_TYPE_BF16) | sdk::type_bit(KV_TYPE_Q8_0);
inline constexpr uint64_t kWeightTypesMask =
    kCacheTypes | sdk::type_bit(KV_TYPE_Q4_0) | sdk::type_bit(KV_TYPE_Q4_K) | sdk::type_bit(KV_TYPE_Q6_K);
inline constexpr sdk::CacheLimits kCacheLimits = {kCacheTypes, kCacheTypes, 1, kMaxPageTokens};

kv_status device_count(uint32_t* out, char* reason, size_t capacity, kv_error* error);
kv_status device_info(uint32_t index, kvb_device_info* out, kv_error* error);
kv_status device_open(const Instance& instance, uint32_t index, const kvb_device_options* options, Device** out,
                      kv_error* error);
kv_status device_query(const Device& device, uint32_t key, uint64_t* out, kv_error* error);

}  // namespace kvasir::cpu
