// SPDX-License-Identifier: MIT
//
// Running steps.
#include "queue.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "sdk/errors.h"
#include "sdk/verify.h"

namespace kvasir::cpu {
namespace {

bool stop_asked(const kvb_step& step) {
  return step.stop != nullptr && __atomic_load_n(step.stop, __ATOMIC_RELAXED) != 0;
}

// A stage for the crew. A stop is noticed at the next chunk; the chunks left are then skipped. That they were is kept
// here: the host may take its word back.
struct StageJob {
  const Stage* stage;
  const StepView* view;
  bool may_stop;
  std::atomic<bool> skipped{false};

  static void run(void* arg, uint32_t chunk, uint32_t member) {
    StageJob& job = *static_cast<StageJob*>(arg);
    if (job.may_stop && stop_asked(*job.view->step)) {
      job.skipped.store(true, std::memory_order_relaxed);
      return;
    }
    job.stage->run(*job.view, chunk, member);
  }
};

void trace_stage(const Program& program, const StepView& view, const Stage& stage) {
  if (stage.traced_op == KVB_NONE || view.step->trace == nullptr) return;
  stage.trace_details(view);
  const kvb_op& op = program.code().ops[stage.traced_op];
  if (op.out[0] == KVB_NONE) return;
  const kvb_value& value = program.code().values[op.out[0]];
  kvb_trace_record record{};
  record.struct_size = sizeof record;
  record.what = KVB_TRACE_VALUE;
  record.op = stage.traced_op;
  record.rows = view.rows(value.rows == KVB_ROWS_OUTPUTS);
  record.width = value.width;
  record.data = value.kind == KVB_VALUE_OUTPUT ? view.out : view.at<float>(value.place);
  view.step->trace(view.step->trace_user, &record);
}

}  // namespace

Queue::Queue(Device& device, uint32_t threads)
    : device_(device),
      process_(getpid()),
      crew_(threads, Executor{device.instance.host.parallel_for, device.instance.host.parallel_user}) {}

Queue::~Queue() {
  if (getpid() != process_) crew_.abandon_threads();
}

kv_status Queue::check_process(kv_error* error) const {
  KV_REQUIRE(getpid() == process_, error, KV_DEVICE_LOST,
             "the queue belongs to process %lld; in this fork of it, %lld, its threads do not exist",
             static_cast<long long>(process_), static_cast<long long>(getpid()));
  return KV_OK;
}

kv_status Queue::submit(Program& program, Cache& cache, const kvb_step& step, float* out, uint64_t out_floats,
                        uint64_t* out_ticket, kv_error* error) {
  KV_TRY(check_process(error));
  KV_REQUIRE(&program.device() == &device_ && &cache.device() == &device_, error, KV_INVALID_ARGUMENT,
             "the program or the cache is of another device than the queue");
  KV_REQUIRE(program.cache_layout() == cache.layout(), error, KV_INVALID_ARGUMENT,
             "the program was compiled for a cache of another description");
  KV_TRY(sdk::verify_step(program.code(), cache.layout(), cache.page_counts(), step, out, out_floats, error));
  // Its place comes first: nothing may fail for want of memory once rows are being written.
  outcomes_.push_back({++last_ticket_, KV_INTERNAL});
  outcomes_.back().status = run(program, program.view(step, cache, out, crew_.size()));
  *out_ticket = last_ticket_;
  return KV_OK;
}

// From the first stage on that writes rows for the host a step runs to its end: `out` is complete or untouched.
kv_status Queue::run(Program& program, const StepView& view) {
  for (size_t i = 0; i < program.stages().size(); i++) {
    const Stage& stage = *program.stages()[i];
    StageJob job{&stage, &view, i < program.first_output_stage()};
    if (i <= program.first_output_stage() && stop_asked(*view.step)) return KV_CANCELLED;
    crew_.run(stage.chunks(view), StageJob::run, &job);
    if (job.skipped.load(std::memory_order_relaxed)) return KV_CANCELLED;
    trace_stage(program, view, stage);
  }
  return KV_OK;
}

// Every ticket handed out is finished, so there is nothing to time.
kv_status Queue::wait(uint64_t ticket, kv_error* error) {
  KV_TRY(check_process(error));
  KV_REQUIRE(ticket > 0 && ticket <= last_ticket_, error, KV_INVALID_ARGUMENT, "ticket %llu of %llu",
             static_cast<unsigned long long>(ticket), static_cast<unsigned long long>(last_ticket_));
  const auto found = std::find_if(outcomes_.begin(), outcomes_.end(),
                                  [&](const Outcome& outcome) { return outcome.ticket == ticket; });
  KV_REQUIRE(found != outcomes_.end(), error, KV_INVALID_ARGUMENT, "ticket %llu was waited for already",
             static_cast<unsigned long long>(ticket));
  const kv_status status = found->status;
  outcomes_.erase(found);
  KV_REQUIRE(status == KV_OK, error, status, status == KV_CANCELLED ? "the step was asked to stop" : "the step failed");
  return KV_OK;
}

kv_status queue_create(Device& device, const kvb_queue_options* options, Queue** out, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  kvb_queue_options copy{};
  if (options != nullptr) KV_TRY(sdk::read_struct(options, "the queue options", &copy, error));
  const uint32_t wanted = copy.threads == 0 ? device.default_threads : std::min(copy.threads, device.default_threads);
  auto queue = std::make_unique<Queue>(device, wanted);
  device.instance.log(queue->members() < wanted ? KV_LOG_WARNING : KV_LOG_DEBUG,
                      "cpu: a queue of %u threads (asked for %u, processors %u)", queue->members(), copy.threads,
                      device.default_threads);
  *out = queue.release();
  return KV_OK;
}

}  // namespace kvasir::cpu
