// SPDX-License-Identifier: MIT
//
// Running steps: verify, then op after op. A malformed step is refused by submit and gets no ticket; a cancelled one
// has a ticket, whose wait says so.
#include "queue.h"

#include <algorithm>

#include "ops.h"
#include "sdk/fpstate.h"
#include "sdk/handle.h"
#include "sdk/verify.h"

namespace kvasir::ref {

using sdk::object_of;

namespace {

void trace_value(const OpContext& context) {
  if (!context.program.code().traced() || context.step.trace == nullptr || context.op().out[0] == KVB_NONE) return;
  const Matrix y = context.out();
  const kvb_trace_record record{
      sizeof record, KVB_TRACE_VALUE, context.index, 0, 0, static_cast<uint32_t>(y.rows), y.width, 0, y.data};
  context.step.trace(context.step.trace_user, &record);
}

kv_status run_step(const Program& program, const Cache& cache, const kvb_step& step) {
  for (uint32_t i = 0; i < program.code().ops.size(); ++i) {
    const OpContext context{program, cache, step, i};
    if (context.stopped()) return KV_CANCELLED;
    KV_TRY(run_op(context));
    trace_value(context);
  }
  return KV_OK;
}

}  // namespace

kv_status Queue::check(const Program& program, const Cache& cache, const kvb_step& step, const float* out,
                       uint64_t out_floats, kv_error* error) const {
  KV_REQUIRE(&program.device() == &device_ && &cache.device() == &device_, error, KV_INVALID_ARGUMENT,
             "the program or the cache is of another device than the queue");
  KV_REQUIRE(program.layout() == cache.layout(), error, KV_INVALID_ARGUMENT,
             "the program was compiled for a cache of another description");
  return sdk::verify_step(program.code(), cache.layout(), cache.page_counts(), step, out, out_floats, error);
}

kv_status Queue::submit(const Program& program, const Cache& cache, const kvb_step& step, float* out,
                        uint64_t out_floats, uint64_t* out_ticket, kv_error* error) {
  KV_TRY(check(program, cache, step, out, out_floats, error));
  // Its place comes first: nothing may fail for want of memory once rows are being written.
  outcomes_.push_back({++last_ticket_, KV_INTERNAL});
  {
    const sdk::FloatingPointScope scope;
    outcomes_.back().status = run_step(program, cache, step);
  }
  if (outcomes_.back().status == KV_OK) {
    std::copy_n(program.output(), program.code().output_floats(step.output_count), out);
  }
  *out_ticket = last_ticket_;
  return KV_OK;
}

kv_status Queue::wait(uint64_t ticket, kv_error* error) {
  KV_REQUIRE(ticket > 0 && ticket <= last_ticket_, error, KV_INVALID_ARGUMENT, "ticket %llu of %llu",
             static_cast<unsigned long long>(ticket), static_cast<unsigned long long>(last_ticket_));
  const auto found = std::find_if(outcomes_.begin(), outcomes_.end(),
                                  [ticket](const Outcome& outcome) { return outcome.ticket == ticket; });
  KV_REQUIRE(found != outcomes_.end(), error, KV_INVALID_ARGUMENT, "ticket %llu was waited for already",
             static_cast<unsigned long long>(ticket));
  const kv_status status = found->status;
  outcomes_.erase(found);
  KV_REQUIRE(status == KV_OK, error, status, status == KV_CANCELLED ? "the step was asked to stop" : "the step failed");
  return KV_OK;
}

kv_status queue_create(kvb_device* device, const kvb_queue_options* options, kvb_queue** out, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "device or out is NULL");
    kvb_queue_options copy{};  // this backend has one thread, the caller's, whatever `threads` says
    if (options != nullptr) KV_TRY(sdk::read_struct(options, "the queue options", &copy, error));
    *out = sdk::handle_of<kvb_queue>(new Queue(*object_of<Device>(device)));
    return kv_status{KV_OK};
  });
}

void queue_destroy(kvb_queue* queue) { delete object_of<Queue>(queue); }

kv_status queue_submit(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                       uint64_t out_floats, uint64_t* out_ticket, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(queue != nullptr && program != nullptr && cache != nullptr && out_ticket != nullptr, error,
               KV_INVALID_ARGUMENT, "queue, program, cache or out_ticket is NULL");
    kvb_step copy{};
    KV_TRY(sdk::read_struct(step, "the step", &copy, error));
    return object_of<Queue>(queue)->submit(*object_of<Program>(program), *object_of<Cache>(cache), copy, out,
                                           out_floats, out_ticket, error);
  });
}

// Every ticket handed out is finished, so there is nothing to time.
kv_status queue_wait(kvb_queue* queue, uint64_t ticket, uint64_t /*timeout_ns*/, kv_error* error) {
  KV_REQUIRE(queue != nullptr, error, KV_INVALID_ARGUMENT, "queue is NULL");
  return object_of<Queue>(queue)->wait(ticket, error);
}

}  // namespace kvasir::ref
