// SPDX-License-Identifier: MIT
//
// ContextPlan: what a context will be, decided and measured before anything of it is allocated: device, cache types,
// page size, capacity, step buckets, bytes. kv_context_plan reports it, kv_context_create carries it out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/plan.h"
#include "runtime/model.h"

namespace kvasir {

// One compiled shape: steps of at most max_tokens tokens.
struct Bucket {
  uint32_t max_tokens = 0;
  uint32_t max_outputs = 0;
  ScratchPlan scratch;
};

struct ContextPlan {
  std::shared_ptr<const Device> device;
  std::string choice;  // how "auto" chose, one line per backend that was passed over

  uint32_t compute_mode = KV_COMPUTE_EXACT;
  uint32_t threads = 0;
  uint32_t page_tokens = 0;
  uint64_t max_tokens = 0;
  uint64_t max_pages = 0;  // what the byte budget allows; else as many as max_tokens may ever need
  uint32_t max_batch_tokens = 0;
  uint32_t max_sequences = 0;
  bool poison = false;

  std::vector<uint32_t> weight_types;   // [program.weights]
  std::vector<kvb_cache_group> groups;  // [program.cache_groups]
  std::vector<Bucket> buckets;          // smallest first; a trace is compiled for the last one

  uint64_t weight_bytes = 0;
  uint64_t cache_bytes = 0;  // for max_tokens
  uint64_t scratch_bytes = 0;
  uint64_t page_bytes = 0;

  // The cache as a backend sees it; points into the plan and the model.
  kvb_cache_desc cache_desc(const Model& model) const;
  // A bucket's program as a backend sees it; points into the plan and the model.
  kvb_program_desc program_desc(const Model& model, const Bucket& bucket) const;
};

// `options` has been copied in: absent fields are zero.
Status plan_context(Model& model, const kv_context_options& options, ContextPlan* out);

}  // namespace kvasir
