// SPDX-License-Identifier: MIT
//
// The queue: a step runs inside submit, and its outcome waits under its ticket to be fetched once.
#pragma once

#include <cstdint>
#include <deque>

#include "cache.h"
#include "program.h"

namespace kvasir::ref {

class Queue {
 public:
  explicit Queue(Device& device) : device_(device) {}

  kv_status submit(const Program& program, const Cache& cache, const kvb_step& step, float* out, uint64_t out_floats,
                   uint64_t* out_ticket, kv_error* error);
  kv_status wait(uint64_t ticket, kv_error* error);

 private:
  struct Outcome {
    uint64_t ticket;
    kv_status status;
  };

  kv_status check(const Program& program, const Cache& cache, const kvb_step& step, const float* out,
                  uint64_t out_floats, kv_error* error) const;

  Device& device_;
  uint64_t last_ticket_ = 0;
  std::deque<Outcome> outcomes_;  // of tickets not waited for yet, rising
};

kv_status queue_create(kvb_device* device, const kvb_queue_options* options, kvb_queue** out, kv_error* error);
void queue_destroy(kvb_queue* queue);
kv_status queue_submit(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                       uint64_t out_floats, uint64_t* out_ticket, kv_error* error);
kv_status queue_wait(kvb_queue* queue, uint64_t ticket, uint64_t timeout_ns, kv_error* error);

}  // namespace kvasir::ref
