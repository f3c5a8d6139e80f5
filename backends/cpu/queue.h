// SPDX-License-Identifier: MIT
//
// The queue: runs a step's stages on its crew before submit returns, and keeps the outcome for wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "crew.h"
#include "device.h"
#include "kvasir/backend.h"
#include "program.h"

namespace kvasir::cpu {

class Queue {
 public:
  Queue(Device& device, uint32_t threads);
  ~Queue();

  kv_status submit(Program& program, Cache& cache, const kvb_step& step, float* out, uint64_t out_floats,
                   uint64_t* out_ticket, kv_error* error);
  kv_status wait(uint64_t ticket, kv_error* error);

  // KV_DEVICE_LOST in a child process: the crew's threads stayed with the parent.
  kv_status check_process(kv_error* error) const;
  Device& device() const { return device_; }
  uint32_t members() const { return crew_.size(); }

 private:
  struct Outcome {
    uint64_t ticket;
    kv_status status;
  };

  kv_status run(Program& program, const StepView& view);

  Device& device_;
  const pid_t process_;
  Crew crew_;
  uint64_t last_ticket_ = 0;
  std::vector<Outcome> outcomes_;  // of tickets nobody waited for yet
};

kv_status queue_create(Device& device, const kvb_queue_options* options, Queue** out, kv_error* error);

}  // namespace kvasir::cpu
