// SPDX-License-Identifier: MIT
//
// A weight keeps the bytes it was given, unchanged: copied, or, when imported, borrowed until it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"

namespace kvasir::ref {

class Weight {
 public:
  // Takes over `desc` (checked): its bytes and, when imported, the duty to call release.
  static kv_status create(Device& device, const kvb_weight_desc& desc, Weight** out, kv_error* error);
  ~Weight();
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;

  const Device& device() const { return device_; }
  uint32_t type() const { return desc_.type; }
  uint32_t depth() const { return desc_.depth; }
  uint32_t rows() const { return desc_.rows; }
  uint32_t width() const { return desc_.width; }

  // Row `row` of matrix `matrix`, widened to f32.
  void read_row(uint32_t matrix, uint32_t row, float* out) const;  // out [width]

 private:
  Weight(Device& device, const kvb_weight_desc& desc) : device_(device), desc_(desc) {}

  Device& device_;
  kvb_weight_desc desc_;  // desc_.data is where the bytes are now
  sdk::HostBlock copy_;   // empty when imported
};

kv_status weight_memory(kvb_device* device, const kvb_weight_desc* desc, kvb_memory* out, kv_error* error);
kv_status weight_create(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error);
void weight_destroy(kvb_weight* weight);

}  // namespace kvasir::ref
