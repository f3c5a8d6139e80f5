// SPDX-License-Identifier: MIT
//
// Instance and device: creation, description, queries.
#include "device.h"

#include <cstring>

#include "sdk/entry.h"
#include "sdk/handle.h"

namespace kvasir::ref {

using sdk::object_of;

namespace {

constexpr char kVariant[] = "scalar";

template <size_t kCapacity>
void copy_text(const char* text, char (&out)[kCapacity]) {
  std::strncpy(out, text, kCapacity - 1);
}

}  // namespace

kv_status instance_create(const kvb_host* host, kvb_instance** out, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
    kvb_host copy{};
    KV_TRY(sdk::read_host(host, &copy, error));
    *out = sdk::handle_of<kvb_instance>(new Instance{copy});
    return kv_status{KV_OK};
  });
}

void instance_destroy(kvb_instance* instance) { delete object_of<Instance>(instance); }

kv_status device_count(kvb_instance* instance, uint32_t* out, char* reason, size_t capacity, kv_error* error) {
  KV_REQUIRE(instance != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "instance or out is NULL");
  if (reason != nullptr && capacity > 0) reason[0] = '\0';
  *out = 1;
  return KV_OK;
}

kv_status device_info(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error) {
  KV_REQUIRE(instance != nullptr, error, KV_INVALID_ARGUMENT, "instance is NULL");
  KV_REQUIRE(index == 0, error, KV_NOT_FOUND, "device %u of 1", index);
  KV_TRY(sdk::check_out_struct(out, "out", error));
  kvb_device_info info{};
  info.struct_size = sizeof info;
  info.kind = KVB_DEVICE_CPU;
  copy_text("Reference (scalar, double)", info.name);
  copy_text("portable C++", info.driver);
  sdk::write_struct(info, out);
  return KV_OK;
}

kv_status device_open(kvb_instance* instance, uint32_t index, const kvb_device_options* options, kvb_device** out,
                      kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(instance != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "instance or out is NULL");
    KV_REQUIRE(index == 0, error, KV_NOT_FOUND, "device %u of 1", index);
    kvb_device_options copy{};
    if (options != nullptr) KV_TRY(sdk::read_struct(options, "the device options", &copy, error));
    KV_REQUIRE(copy.reserved == 0, error, KV_UNSUPPORTED, "the device options set a reserved field");
    KV_REQUIRE(copy.variant == nullptr || std::strcmp(copy.variant, kVariant) == 0, error, KV_UNSUPPORTED,
               "the reference backend has the variant '%s' only, not '%s'", kVariant, copy.variant);
    *out = sdk::handle_of<kvb_device>(new Device(object_of<Instance>(instance)->host.allocator));
    return kv_status{KV_OK};
  });
}

void device_close(kvb_device* device) { delete object_of<Device>(device); }

kv_status device_query(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error) {
  KV_REQUIRE(device != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "device or out is NULL");
  switch (key) {
    case KVB_QUERY_WEIGHT_TYPES: *out = kWeightTypes; return KV_OK;
    case KVB_QUERY_K_TYPES:
    case KVB_QUERY_V_TYPES: *out = kCacheTypes; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS: *out = kPageTokens; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS_MIN: *out = kCacheLimits.page_tokens_min; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS_MAX: *out = kCacheLimits.page_tokens_max; return KV_OK;
    case KVB_QUERY_BATCH_TOKENS: *out = kBatchTokens; return KV_OK;
    case KVB_QUERY_DETERMINISTIC:
    case KVB_QUERY_HOST_MEMORY:
    case KVB_QUERY_WEIGHT_IMPORT:
    case KVB_QUERY_DEFAULT_THREADS: *out = 1; return KV_OK;
    case KVB_QUERY_MEMORY_USED: *out = object_of<Device>(device)->memory.used(); return KV_OK;
    default: return sdk::fail(error, KV_UNSUPPORTED, "device query %u is unknown", key);
  }
}

const char* device_variant(kvb_device*) { return kVariant; }

}  // namespace kvasir::ref
