// SPDX-License-Identifier: MIT
//
// Backends for tests that are part of the test program. They count their instances; what they report is set per test.
#pragma once

#include <atomic>
#include <cstring>
#include <vector>

#include "loader/static_table.h"
#include "plugins/stub.h"

namespace kvasir::test {

// One per backend name, so that tests can shape what each one reports.
struct Behaviour {
  std::atomic<int> queried{0};
  std::atomic<int> created{0};
  std::atomic<int> destroyed{0};
  kv_status create_status = KV_OK;
  kv_status count_status = KV_OK;
  const char* reason = "";           // for having no device
  std::vector<uint32_t> kinds = {};  // of its devices; 0 = device_info fails

  void reset() {
    queried = created = destroyed = 0;
    create_status = count_status = KV_OK;
    reason = "";
    kinds.clear();
  }
};

// `Self` is a behaviour with static storage; the table's functions find it through the template argument.
template <Behaviour* Self>
struct BuiltIn {
  static kv_status instance_create(const kvb_host* host, kvb_instance** out, kv_error* error) {
    if (Self->create_status != KV_OK) std::snprintf(error->message, sizeof error->message, "not today");
    if (Self->create_status != KV_OK) return Self->create_status;
    ++Self->created;
    *out = new kvb_instance{*host};
    return KV_OK;
  }

  static void instance_destroy(kvb_instance* instance) {
    ++Self->destroyed;
    delete instance;
  }

  static kv_status device_count(kvb_instance*, uint32_t* out, char* reason, size_t capacity, kv_error* error) {
    if (Self->count_status != KV_OK) std::snprintf(error->message, sizeof error->message, "the driver is asleep");
    if (Self->count_status != KV_OK) return Self->count_status;
    *out = static_cast<uint32_t>(Self->kinds.size());
    if (reason != nullptr && Self->kinds.empty()) std::snprintf(reason, capacity, "%s", Self->reason);
    return KV_OK;
  }

  static kv_status device_info(kvb_instance*, uint32_t index, kvb_device_info* out, kv_error* error) {
    out->kind = Self->kinds.at(index);
    std::snprintf(error->message, sizeof error->message, "device %u is sick", index);
    if (out->kind == 0) return KV_DEVICE_LOST;
    std::memset(out->name, 'n', sizeof out->name);  // no NUL: must not be read past its end
    return KV_OK;
  }

  template <const char* Name>
  static const kvb_api* query(const kvb_host*, kv_error*) {
    ++Self->queried;
    static const kvb_api api = [] {
      kvb_api table = stub::table(Name);
      table.instance_create = instance_create;
      table.instance_destroy = instance_destroy;
      table.device_count = device_count;
      table.device_info = device_info;
      return table;
    }();
    return &api;
  }
};

inline Behaviour cpu, vulkan, cuda, ref;
inline constexpr char kCpu[] = "cpu", kVulkan[] = "vulkan", kCuda[] = "cuda", kRef[] = "ref";

inline constexpr StaticBackend kBuiltIn[] = {
    {kCpu, BuiltIn<&cpu>::query<kCpu>},
    {kVulkan, BuiltIn<&vulkan>::query<kVulkan>},
    {kCuda, BuiltIn<&cuda>::query<kCuda>},
    {kRef, BuiltIn<&ref>::query<kRef>},
};

}  // namespace kvasir::test
