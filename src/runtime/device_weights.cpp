// SPDX-License-Identifier: MIT
#include "runtime/device_weights.h"

#include <algorithm>
#include <utility>

#include "base/float_state.h"
#include "model/types.h"
#include "runtime/cancel.h"

namespace kvasir {

namespace {

constexpr uint64_t kReadBytes = uint64_t{16} << 20;  // between two looks at the stop flag

kvb_weight_desc describe_weight(const TensorInfo& info, uint32_t type, bool vector) {
  kvb_weight_desc desc = {};
  desc.struct_size = sizeof desc;
  desc.type = type;
  desc.depth = 1;
  desc.rows = static_cast<uint32_t>(vector ? 1 : info.dims[1]);
  desc.width = static_cast<uint32_t>(info.dims[0]);
  uint64_t bytes = 0;
  if (row_bytes(type, info.dims[0], &bytes)) desc.bytes = bytes * desc.rows;  // cannot overflow: validate bounds both
  return desc;
}

// Reads tensors one after another, converts what the device does not take, and hands each over.
class Loader {
 public:
  Loader(const Device& device, const WeightSource& source, const LoadControl& control, uint64_t total)
      : device_(device), source_(source), control_(control), total_(total) {}

  Status load(const WeightUse& use, uint32_t type, kvb_weight** out) {
    const TensorInfo& info = source_.info(use.tensor);
    const uint8_t* data = source_.view(use.tensor);
    if (data == nullptr) {
      KV_RETURN_IF_ERROR(read(use.tensor, info));
      data = raw_.as<uint8_t>();
    } else {
      KV_RETURN_IF_ERROR(advance(info.bytes));
    }
    kvb_weight_desc desc = describe_weight(info, type, use.vector);
    if (type != info.type) {
      KV_RETURN_IF_ERROR(reserve(&converted_, desc.bytes, info));
      if (Status status = convert(info.type, data, info.rows * info.dims[0], type, converted_.data()); !status.ok()) {
        return Status::error(status.code(), "tensor '%s': %s", info.name.c_str(), status.message());
      }
      data = converted_.as<uint8_t>();
    }
    desc.data = data;
    Status status =
        backend_call([&](kv_error* error) { return device_.api().weight_create(device_.handle(), &desc, out, error); });
    if (status.ok()) return status;
    return Status::error(status.code(), "tensor '%s': %s", info.name.c_str(), status.message());
  }

 private:
  Status reserve(HostBlock* block, uint64_t bytes, const TensorInfo& info) {
    if (block->bytes() >= bytes) return {};
    *block = HostBlock();  // give the old one back first
    return HostBlock::allocate(device_.runtime().allocator(), bytes, info.name.c_str(), block);
  }

  Status read(size_t tensor, const TensorInfo& info) {
    KV_RETURN_IF_ERROR(reserve(&raw_, info.bytes, info));
    for (uint64_t offset = 0; offset < info.bytes; offset += kReadBytes) {
      const uint64_t bytes = std::min(kReadBytes, info.bytes - offset);
      KV_RETURN_IF_ERROR(source_.read(tensor, offset, raw_.as<uint8_t>() + offset, bytes));
      KV_RETURN_IF_ERROR(advance(bytes));
    }
    return {};
  }

  Status advance(uint64_t bytes) {
    KV_CHECK(!stop_requested(control_.stop), KV_CANCELLED, "loading was cancelled after %llu of %llu bytes",
             static_cast<unsigned long long>(done_), static_cast<unsigned long long>(total_));
    done_ += bytes;
    if (control_.progress == nullptr) return {};
    const HostFloatState floats;
    control_.progress(control_.progress_user, done_, total_);
    return {};
  }

  const Device& device_;
  const WeightSource& source_;
  const LoadControl& control_;
  const uint64_t total_;
  uint64_t done_ = 0;
  HostBlock raw_, converted_;
};

}  // namespace

Status DeviceWeights::choose_types(const Device& device, const Program& program, const WeightSource& source, Loss loss,
                                   std::vector<uint32_t>* out) {
  const uint64_t supported = device.query(KVB_QUERY_WEIGHT_TYPES, type_bit(KV_TYPE_F32));
  std::vector<uint32_t> types;
  for (const WeightUse& use : program.weights) {
    const TensorInfo& info = source.info(use.tensor);
    const uint32_t type =
        use.vector ? static_cast<uint32_t>(KV_TYPE_F32) : nearest_supported(info.type, supported, loss);
    KV_CHECK(type != KV_TYPE_DEFAULT, KV_UNSUPPORTED, "tensor '%s' is %s, which %s cannot run or hold without loss",
             info.name.c_str(), type_name(info.type), device.name().c_str());
    types.push_back(type);
  }
  *out = std::move(types);
  return {};
}

Status DeviceWeights::measure(const Device& device, const Program& program, const WeightSource& source,
                              const std::vector<uint32_t>& types, uint64_t* out) {
  uint64_t total = 0;
  for (size_t i = 0; i < program.weights.size(); i++) {
    const WeightUse& use = program.weights[i];
    const kvb_weight_desc desc = describe_weight(source.info(use.tensor), types[i], use.vector);
    kvb_memory memory = {};
    memory.struct_size = sizeof memory;
    KV_RETURN_IF_ERROR(backend_call(
        [&](kv_error* error) { return device.api().weight_memory(device.handle(), &desc, &memory, error); }));
    total += memory.device_bytes;
  }
  *out = total;
  return {};
}

Status DeviceWeights::load(std::shared_ptr<const Device> device, const Program& program, const WeightSource& source,
                           Loss loss, const LoadControl& control, std::shared_ptr<const DeviceWeights>* out) {
  std::shared_ptr<DeviceWeights> weights(new DeviceWeights(std::move(device)));
  KV_RETURN_IF_ERROR(choose_types(*weights->device_, program, source, loss, &weights->types_));
  uint64_t total = 0;
  for (const WeightUse& use : program.weights) total += source.info(use.tensor).bytes;
  Loader loader(*weights->device_, source, control, total);
  weights->owned_.reserve(program.weights.size());
  weights->handles_.reserve(program.weights.size());
  for (size_t i = 0; i < program.weights.size(); i++) {
    kvb_weight* handle = nullptr;
    KV_RETURN_IF_ERROR(loader.load(program.weights[i], weights->types_[i], &handle));
    weights->owned_.emplace_back(handle, weights->device_->api().weight_destroy);
    weights->handles_.push_back(handle);
  }
  *out = std::move(weights);
  return {};
}

}  // namespace kvasir
