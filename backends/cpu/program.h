// SPDX-License-Identifier: MIT
//
// A compiled program: stages, and one block of memory for scratch, operands, tables and partial results. Running it is
// the queue's business.
#pragma once

#include <cstdint>
#include <vector>

#include "cache.h"
#include "device.h"
#include "kvasir/backend.h"
#include "lowering.h"
#include "sdk/cache_layout.h"
#include "sdk/walk.h"
#include "weight.h"

namespace kvasir::cpu {

// A description, read and judged. Lowering it needs no weights.
struct ProgramSource {
  sdk::Program code;
  sdk::CacheLayout cache;
  std::vector<GroupLayout> groups;
};

class Program {
 public:
  Program(Device& owner, ProgramSource source, Lowered lowered, std::vector<const Weight*> weights);

  // Takes the memory and packs what the program packs itself.
  kv_status allocate(kv_error* error);

  Device& device() const { return device_; }
  const sdk::Program& code() const { return source_.code; }
  const sdk::CacheLayout& cache_layout() const { return source_.cache; }
  const std::vector<std::unique_ptr<Stage>>& stages() const { return lowered_.stages; }
  // Stages from this index on write rows for the host: a step is not stopped there any more.
  size_t first_output_stage() const { return first_output_stage_; }

  // The step as the stages see it; cuts its attention.
  StepView view(const kvb_step& step, Cache& cache, float* out, uint32_t members);

 private:
  Device& device_;
  const ProgramSource source_;
  Lowered lowered_;
  const std::vector<const Weight*> weights_;
  size_t first_output_stage_ = 0;
  sdk::HostBlock block_;
};

kv_status program_check(const Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                        uint32_t* first_unsupported, kv_error* error);
kv_status program_memory(const Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                         kvb_memory* out, kv_error* error);
kv_status program_compile(Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                          kvb_weight* const* weights, uint32_t weight_count, Program** out, kv_error* error);

}  // namespace kvasir::cpu
