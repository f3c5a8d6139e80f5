// SPDX-License-Identifier: MIT
//
// Weights: size, creation, rows as f32.
#include "weight.h"

#include <cstring>
#include <utility>

#include "dequantize.h"
#include "sdk/handle.h"
#include "sdk/verify.h"

namespace kvasir::ref {

using sdk::object_of;

kv_status Weight::create(Device& device, const kvb_weight_desc& desc, Weight** out, kv_error* error) {
  const bool imported = (desc.flags & KVB_WEIGHT_IMPORT) != 0;
  sdk::HostBlock copy;
  if (!imported) KV_TRY(sdk::HostBlock::allocate(device.memory, desc.bytes, "a weight", &copy, error));
  auto* weight = new Weight(device, desc);
  if (!imported) {
    std::memcpy(copy.bytes(), desc.data, copy.size());
    weight->copy_ = std::move(copy);
    weight->desc_.data = weight->copy_.bytes();
  }
  *out = weight;
  return KV_OK;
}

Weight::~Weight() {
  if ((desc_.flags & KVB_WEIGHT_IMPORT) != 0 && desc_.release != nullptr) desc_.release(desc_.release_user);
}

void Weight::read_row(uint32_t matrix, uint32_t row, float* out) const {
  const uint64_t row_bytes = sdk::padded_bytes(desc_.type, desc_.width);
  const auto* bytes = static_cast<const std::byte*>(desc_.data);
  dequantize(desc_.type, bytes + (uint64_t{matrix} * desc_.rows + row) * row_bytes, desc_.width, out);
}

kv_status weight_memory(kvb_device* device, const kvb_weight_desc* desc, kvb_memory* out, kv_error* error) {
  KV_REQUIRE(device != nullptr, error, KV_INVALID_ARGUMENT, "device is NULL");
  KV_TRY(sdk::check_out_struct(out, "out", error));
  kvb_weight_desc copy{};
  KV_TRY(sdk::read_weight(desc, kWeightTypes, &copy, error));
  const uint64_t bytes = (copy.flags & KVB_WEIGHT_IMPORT) != 0 ? 0 : copy.bytes;
  sdk::write_struct(kvb_memory{sizeof(kvb_memory), 0, bytes, 0}, out);
  return KV_OK;
}

kv_status weight_create(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  // Import promises one release whatever happens, also for a description that is refused.
  const auto refused = [&](kv_status status) {
    kvb_weight_desc copy{};
    if (status != KV_OK && sdk::read_struct(desc, "the weight", &copy, nullptr) == KV_OK &&
        (copy.flags & KVB_WEIGHT_IMPORT) != 0 && copy.release != nullptr) {
      copy.release(copy.release_user);
    }
    return status;
  };
  return refused(sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "device or out is NULL");
    kvb_weight_desc copy{};
    KV_TRY(sdk::read_weight(desc, kWeightTypes, &copy, error));
    KV_REQUIRE(copy.data != nullptr, error, KV_INVALID_ARGUMENT, "the weight's data is NULL");
    Weight* weight = nullptr;
    KV_TRY(Weight::create(*object_of<Device>(device), copy, &weight, error));
    *out = sdk::handle_of<kvb_weight>(weight);
    return kv_status{KV_OK};
  }));
}

void weight_destroy(kvb_weight* weight) { delete object_of<Weight>(weight); }

}  // namespace kvasir::ref
