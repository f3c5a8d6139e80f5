// SPDX-License-Identifier: MIT
//
// One step as the stages of a program see it: what the host gave, the program's memory, the weights, the cache, and the
// kernels. Plain data, read by all members of the crew; only the memory it points to is written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cache.h"
#include "device.h"
#include "kvasir/backend.h"
#include "weight.h"

namespace kvasir::cpu {

class AttentionPlan;

struct StepView {
  const Device* device;
  const kvb_step* step;
  Cache* cache;
  const Weight* const* weights;
  std::byte* memory;                     // the program's block
  float* out;                            // [outputs, width of the output value]
  uint32_t members;                      // of the crew
  const AttentionPlan* attention_plans;  // made for this step
  uint64_t member_base;                  // scratch memory of member 0 in `memory`
  uint64_t member_stride;                // bytes from one member's to the next

  const Kernels& kernels() const { return device->kernels; }
  uint32_t rows(bool output_rows) const { return output_rows ? step->output_count : step->token_count; }
  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(memory + offset);
  }
  float* member_scratch(uint32_t member) const { return at<float>(member_base + member * member_stride); }
};

// An activation: where its rows are.
struct Tensor {
  uint32_t width = 0;
  bool output_rows = false;  // O rows, else T
  bool host = false;         // the rows handed to the host, else scratch
  uint64_t offset = 0;       // in the program's block
  uint64_t max_rows = 0;

  float* row(const StepView& view, uint32_t r) const {
    float* base = host ? view.out : view.at<float>(offset);
    return base + size_t{r} * width;
  }
  uint64_t end() const { return offset + max_rows * width * sizeof(float); }
};

// No byte in common.
inline bool disjoint(const Tensor& a, const Tensor& b) {
  if (a.host || b.host) return a.host != b.host;
  return a.end() <= b.offset || b.end() <= a.offset;
}

// Row r of one touches row s of the other only where r = s.
inline bool row_compatible(const Tensor& a, const Tensor& b) {
  if (a.host && b.host) return true;
  return disjoint(a, b) || (a.offset == b.offset && a.width == b.width && a.output_rows == b.output_rows);
}

}  // namespace kvasir::cpu
