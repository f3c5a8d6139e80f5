// SPDX-License-Identifier: MIT
#include "runtime/device.h"

#include <utility>

namespace kvasir {

Status Device::open(std::shared_ptr<Runtime> runtime, const Choice& choice, const char* variant,
                    std::unique_ptr<Device>* out) {
  const Backend& backend = *choice.backend;
  std::unique_ptr<Device> device(new Device(std::move(runtime), backend.api));
  kvb_device_options options = {};
  options.struct_size = sizeof options;
  options.variant = variant;
  kvb_device* handle = nullptr;
  KV_RETURN_IF_ERROR(backend_call([&](kv_error* error) {
    return backend.api->device_open(backend.instance, choice.device, &options, &handle, error);
  }));
  device->device_.reset(handle);
  device->backend_ = backend.name;
  device->name_ = backend.name + ":" + std::to_string(choice.device);
  device->variant_ = backend.api->device_variant(handle);
  device->memory_total_ = choice.info.memory_total;
  device->runtime_->log()(KV_LOG_DEBUG, "device %s opened, variant %s", device->name_.c_str(),
                          device->variant_.c_str());
  *out = std::move(device);
  return {};
}

uint64_t Device::query(uint32_t key, uint64_t fallback) const {
  uint64_t value = 0;
  return api_->device_query(device_.get(), key, &value, nullptr) == KV_OK ? value : fallback;
}

}  // namespace kvasir
