// SPDX-License-Identifier: MIT
//
// Device: one opened device of one backend, in one variant, and what it can do.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend_call.h"
#include "runtime/runtime.h"

namespace kvasir {

class Device {
 public:
  // `spec`: "cpu", "vulkan:1", "auto" or null. `variant`: null for the backend's best.
  static Status open(std::shared_ptr<Runtime> runtime, const Choice& choice, const char* variant,
                     std::unique_ptr<Device>* out);

  const kvb_api& api() const { return *api_; }
  kvb_device* handle() const { return device_.get(); }
  Runtime& runtime() const { return *runtime_; }

  const std::string& backend() const { return backend_; }
  const std::string& name() const { return name_; }        // "cpu:0"
  const std::string& variant() const { return variant_; }  // as the backend names what it runs
  uint64_t memory_total() const { return memory_total_; }

  // A number from device_query; `fallback` where the device does not know the key.
  uint64_t query(uint32_t key, uint64_t fallback) const;

 private:
  Device(std::shared_ptr<Runtime> runtime, const kvb_api* api)
      : runtime_(std::move(runtime)), api_(api), device_(nullptr, api->device_close) {}

  std::shared_ptr<Runtime> runtime_;  // keeps the backend's instance alive
  const kvb_api* api_;
  Owned<kvb_device> device_;
  std::string backend_, name_, variant_;
  uint64_t memory_total_ = 0;
};

}  // namespace kvasir
