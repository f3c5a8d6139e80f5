// SPDX-License-Identifier: MIT
//
// A compiled program: the ops as they came, the weights they name, and all memory a step needs, so that running one
// allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "device.h"
#include "sdk/walk.h"
#include "weight.h"

namespace kvasir::ref {

// Memory of a program, in bytes.
struct ProgramSize {
  uint64_t scratch = 0;  // activations between ops, at the offsets the host planned
  uint64_t output = 0;   // [max_outputs][width] f32: handed to the host when the step has succeeded
  uint64_t row = 0;      // one row as wide as any operand; a program has three
  uint64_t numbers = 0;  // doubles for one softmax, over positions or experts
  uint64_t sums = 0;     // doubles for one output row of attention
  uint64_t trace = 0;    // one traced softmax row
  uint64_t total = 0;
};

class Program {
 public:
  static constexpr uint32_t kRows = 3;

  static kv_status create(Device& device, sdk::Program code, sdk::CacheLayout layout,
                          std::vector<const Weight*> weights, Program** out, kv_error* error);

  const Device& device() const { return device_; }
  const sdk::Program& code() const { return code_; }
  const sdk::CacheLayout& layout() const { return layout_; }
  const Weight& weight(const kvb_value& value) const { return *weights_[value.place]; }

  // Where an activation starts.
  float* activation(const kvb_value& value) const;
  const float* output() const { return output_.as<float>(); }
  float* row(uint32_t index) const { return rows_[index].as<float>(); }
  double* numbers() const { return numbers_.as<double>(); }
  double* sums() const { return sums_.as<double>(); }
  float* trace_row() const { return trace_.as<float>(); }

 private:
  Program(Device& device, sdk::Program code, sdk::CacheLayout layout, std::vector<const Weight*> weights);
  kv_status allocate(kv_error* error);

  Device& device_;
  sdk::Program code_;
  sdk::CacheLayout layout_;
  std::vector<const Weight*> weights_;
  sdk::HostBlock scratch_, output_, rows_[kRows], numbers_, sums_, trace_;
};

kv_status program_check(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                        uint32_t* first_unsupported, kv_error* error);
kv_status program_memory(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache, kvb_memory* out,
                         kv_error* error);
kv_status program_compile(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                          kvb_weight* const* weights, uint32_t weight_count, kvb_program** out, kv_error* error);
void program_destroy(kvb_program* program);

}  // namespace kvasir::ref
