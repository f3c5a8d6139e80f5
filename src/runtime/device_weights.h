// SPDX-License-Identifier: MIT
//
// DeviceWeights: the tensors of one model on one device, in types the device runs. Made once, shared by all contexts.
#pragma once

#include <memory>
#include <vector>

#include "model/convert.h"
#include "model/weights.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kvasir {

// What a long call reports to and is stopped by. Any field may be null.
struct LoadControl {
  kv_progress_fn progress = nullptr;
  void* progress_user = nullptr;
  const uint32_t* stop = nullptr;  // read atomically
};

class DeviceWeights {
 public:
  // The type each of the program's weights would have there; the sentence names a tensor that has none.
  static Status choose_types(const Device& device, const Program& program, const WeightSource& source, Loss loss,
                             std::vector<uint32_t>* out);
  // Bytes the weights would take there.
  static Status measure(const Device& device, const Program& program, const WeightSource& source,
                        const std::vector<uint32_t>& types, uint64_t* out);

  static Status load(std::shared_ptr<const Device> device, const Program& program, const WeightSource& source,
                     Loss loss, const LoadControl& control, std::shared_ptr<const DeviceWeights>* out);

  const Device& device() const { return *device_; }
  const std::vector<uint32_t>& types() const { return types_; }         // [program.weights]
  const std::vector<kvb_weight*>& handles() const { return handles_; }  // [program.weights]

 private:
  explicit DeviceWeights(std::shared_ptr<const Device> device) : device_(std::move(device)) {}

  std::shared_ptr<const Device> device_;
  std::vector<uint32_t> types_;
  std::vector<Owned<kvb_weight>> owned_;
  std::vector<kvb_weight*> handles_;
};

}  // namespace kvasir
