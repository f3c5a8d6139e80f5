// SPDX-License-Identifier: MIT
//
// Device calls: what the machine is, choosing an instruction set, and the answers to device_query.
#include "device.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "machine.h"
#include "sdk/errors.h"
#include "sdk/structs.h"

namespace kvasir::cpu {
namespace {

// "scalar, avx2"
std::string variant_names() {
  std::string names;
  const KernelList list = available_kernels();
  for (uint32_t i = 0; i < list.count; i++) {
    if (i > 0) names += ", ";
    names += list.tables[i]->name;
  }
  return names;
}

void copy_text(const std::string& text, char* out, size_t capacity) {
  const size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), length);
  out[sdk::whole_characters(out, length)] = '\0';
}

kv_status check_index(uint32_t index, kv_error* error) {
  KV_REQUIRE(index == 0, error, KV_INVALID_ARGUMENT, "there is no cpu device %u, only device 0", index);
  return KV_OK;
}

}  // namespace

void Instance::log(int32_t level, const char* format, ...) const {
  if (host.log == nullptr) return;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (written < 0) return;
  host.log(host.log_user, level, text, std::min<size_t>(static_cast<size_t>(written), sizeof text - 1));
}

kv_status device_count(uint32_t* out, char* reason, size_t capacity, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  if (reason != nullptr && capacity > 0) reason[0] = '\0';
  *out = 1;
  return KV_OK;
}

kv_status device_info(uint32_t index, kvb_device_info* out, kv_error* error) {
  KV_TRY(check_index(index, error));
  KV_TRY(sdk::check_out_struct(out, "the device information", error));
  const MachineMemory memory = machine_memory();
  kvb_device_info info{};
  info.kind = KVB_DEVICE_CPU;
  copy_text(processor_name(), info.name, sizeof info.name);
  copy_text("instruction sets: " + variant_names(), info.driver, sizeof info.driver);
  info.memory_total = memory.total;
  info.memory_available = memory.available;
  sdk::write_struct(info, out);
  return KV_OK;
}

kv_status device_open(const Instance& instance, uint32_t index, const kvb_device_options* options, Device** out,
                      kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  KV_TRY(check_index(index, error));
  kvb_device_options copy{};
  if (options != nullptr) KV_TRY(sdk::read_struct(options, "the device options", &copy, error));
  KV_REQUIRE(copy.reserved == 0, error, KV_UNSUPPORTED, "the device options have a reserved field of %u",
             copy.reserved);
  const Kernels* kernels = find_kernels(copy.variant);
  KV_REQUIRE(kernels != nullptr, error, KV_UNSUPPORTED, "this processor has no variant '%.32s'; it has %s",
             copy.variant, variant_names().c_str());
  const uint32_t threads = usable_processors();
  *out = new Device(instance, *kernels, find_attention_kernels(*kernels), threads);
  instance.log(KV_LOG_DEBUG, "cpu: using the %s kernels (available: %s), %u threads by default%s", kernels->name,
               variant_names().c_str(), threads,
               instance.host.parallel_for != nullptr ? ", on the application's executor" : "");
  return KV_OK;
}

kv_status device_query(const Device& device, uint32_t key, uint64_t* out, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  switch (key) {
    case KVB_QUERY_WEIGHT_TYPES: *out = kWeightTypesMask; return KV_OK;
    case KVB_QUERY_K_TYPES: *out = kCacheTypes; return KV_OK;
    case KVB_QUERY_V_TYPES: *out = kCacheTypes; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS: *out = kPreferredPageTokens; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS_MIN: *out = kCacheLimits.page_tokens_min; return KV_OK;
    case KVB_QUERY_PAGE_TOKENS_MAX: *out = kCacheLimits.page_tokens_max; return KV_OK;
    case KVB_QUERY_BATCH_TOKENS: *out = kPreferredBatchTokens; return KV_OK;
    case KVB_QUERY_DETERMINISTIC: *out = 1; return KV_OK;
    case KVB_QUERY_HOST_MEMORY: *out = 1; return KV_OK;
    case KVB_QUERY_WEIGHT_IMPORT: *out = 0; return KV_OK;
    case KVB_QUERY_MEMORY_USED: *out = device.memory.used(); return KV_OK;
    case KVB_QUERY_DEFAULT_THREADS: *out = device.default_threads; return KV_OK;
    default: return sdk::fail(error, KV_UNSUPPORTED, "the cpu backend does not know the device query %u", key);
  }
}

}  // namespace kvasir::cpu
