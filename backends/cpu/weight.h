// SPDX-License-Identifier: MIT
//
// Weights: matrices packed once for the kernels, vectors (rows = 1) widened to f32.
#pragma once

#include <cstdint>

#include "device.h"
#include "kvasir/backend.h"
#include "pack/layout.h"
#include "sdk/host_memory.h"

namespace kvasir::cpu {

struct Weight {
  const Device* device;
  uint32_t type;  // KV_TYPE_* it was given in
  uint32_t depth, rows, width;
  sdk::HostBlock block;  // packed matrix, or f32 [width]

  const float* vector() const { return block.as<const float>(); }
  const void* matrix() const { return block.bytes(); }
};

// Single rows that are no blocks (norm weights, biases) are kept as f32. A program that multiplies by one packs it.
bool is_vector(uint32_t type, uint32_t depth, uint32_t rows);
// The packed type of a KV_TYPE_* in KVB_QUERY_WEIGHT_TYPES.
WeightType weight_type(uint32_t type);

kv_status weight_memory(const kvb_weight_desc* desc, kvb_memory* out, kv_error* error);
kv_status weight_create(Device& device, const kvb_weight_desc* desc, Weight** out, kv_error* error);

}  // namespace kvasir::cpu
