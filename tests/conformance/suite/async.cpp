// SPDX-License-Identifier: MIT
//
// Group async: tickets and waits, stopping, ending with work pending, threads and executors, the floating-point state.
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "suite/small_world.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace kvasir::conformance {
namespace {

kv_status wait_for(const SmallWorld& world, uint64_t ticket, uint64_t timeout, kv_error* error = nullptr) {
  return world.api().queue_wait(world.queue.get(), ticket, timeout, error);
}

void ticket_is_spent(const SmallWorld& world, uint64_t ticket, const char* what) {
  refuses(std::string("waiting for ") + what, {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return wait_for(world, ticket, KVB_WAIT_FOREVER, e); });
}

void tickets_rise(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const kvb_step step = world.data.view();
  uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t ticket = world.submit(step);
    check(ticket > last, "ticket " + std::to_string(ticket) + " after ticket " + std::to_string(last));
    last = ticket;
    world.wait(ticket);
  }
}

void wait_times(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const kvb_step step = world.data.view();
  for (const uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{1000000}, UINT64_MAX - 1, KVB_WAIT_FOREVER}) {
    const uint64_t ticket = world.submit(step);
    kv_status status = wait_for(world, ticket, timeout);
    check(status == KV_OK || (status == KV_TIMEOUT && timeout < UINT64_MAX - 1),
          "a wait of " + std::to_string(timeout) + " ns gave " + status_text(status));
    if (status == KV_TIMEOUT) status = wait_for(world, ticket, KVB_WAIT_FOREVER);
    check(status == KV_OK, "the wait after a timeout gave " + status_text(status));
    ticket_is_spent(world, ticket, "a ticket again");
  }
}

void unknown_tickets(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  ticket_is_spent(world, 0, "ticket 0 before any");
  ticket_is_spent(world, 1, "ticket 1 before any");
  const uint64_t ticket = world.submit(world.data.view());
  ticket_is_spent(world, ticket + 1, "a ticket of the future");
  ticket_is_spent(world, UINT64_MAX, "ticket UINT64_MAX");
  world.wait(ticket);
}

// Twelve tokens, one per step; the output row of each.
struct Decoding {
  static constexpr uint32_t kSteps = 12;

  explicit Decoding(SmallWorld& owner) : world(owner) {
    for (auto& row : rows) row.assign(SmallModel::kVocab, SmallWorld::kUntouched);
    TestSequence sequence{0, {{0, 1, 2}, {2, 1, 0}}};
    for (uint32_t i = 0; i < kSteps; ++i) steps[i].append(sequence, {static_cast<int32_t>(i * 3 % 11)});
  }

  void submit(uint32_t i, const uint32_t* stop = nullptr) {
    kvb_step step = steps[i].view();
    step.stop = stop;
    succeeds("queue_submit", [&](kv_error* e) {
      return world.api().queue_submit(world.queue.get(), world.program->get(), world.cache.get(), &step, rows[i].data(),
                                      rows[i].size(), &tickets[i], e);
    });
  }
  void one_by_one() {
    for (uint32_t i = 0; i < kSteps; ++i) {
      submit(i);
      world.wait(tickets[i]);
    }
  }
  void expect_same(const Decoding& other, const std::string& what) const {
    for (uint32_t i = 0; i < kSteps; ++i) same_bits(rows[i], other.rows[i], what + ", step " + std::to_string(i));
  }

  SmallWorld& world;
  StepData steps[kSteps];
  std::vector<float> rows[kSteps];
  uint64_t tickets[kSteps] = {};
};

void many_pending(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  Decoding wanted(world), decoding(world);
  wanted.one_by_one();
  for (uint32_t i = 0; i < Decoding::kSteps; ++i) decoding.submit(i);
  for (uint32_t i = Decoding::kSteps; i-- > 0;) world.wait(decoding.tickets[i]);
  decoding.expect_same(wanted, "steps that were submitted together");
}

void destroy_pending(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  Decoding wanted(world), decoding(world);
  wanted.one_by_one();
  for (uint32_t i = 0; i < Decoding::kSteps; ++i) decoding.submit(i);
  world.queue.reset();
  decoding.expect_same(wanted, "steps of a queue that was destroyed");
}

void step_is_copied(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  world.reset();
  kvb_step step = world.data.view();
  const uint64_t ticket = world.submit(step);
  const auto spoil = [](auto& list) { std::memset(list.data(), 0x7f, list.size() * sizeof list[0]); };
  for (uint32_t group = 0; group < step.group_count; ++group) {
    auto& table = const_cast<kvb_page_table&>(step.tables[group]);
    std::memset(const_cast<uint32_t*>(table.pages), 0x7f, step.sequence_count * sizeof(uint32_t));
    table = {};
  }
  spoil(world.data.tokens);
  spoil(world.data.positions);
  spoil(world.data.sequence_of);
  spoil(world.data.lengths);
  spoil(world.data.output_rows);
  spoil(world.data.embeddings);
  std::memset(&step, 0x7f, sizeof step);
  world.wait(ticket);
  same_bits(world.out, wanted, "a step that was spoiled after its submission");
}

void stop_before(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  world.reset();
  const uint32_t stop = 1;
  kvb_step step = world.data.view();
  step.stop = &stop;
  const uint64_t ticket = world.submit(step);
  kv_error error{};
  const kv_status status = wait_for(world, ticket, KVB_WAIT_FOREVER, &error);
  check(status == KV_CANCELLED, "a step whose stop word is set gave " + status_text(status));
  check(error.code == KV_CANCELLED && error.message[0] != '\0', "a stopped step left no sentence");
  check(world.untouched(), "a stopped step wrote its output");
  ticket_is_spent(world, ticket, "the ticket of a stopped step again");
  same_bits(world.run(), wanted, "the step after a stopped one");
}

void stop_among_others(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  Decoding wanted(world), decoding(world);
  wanted.one_by_one();
  const uint32_t stop = 1;
  decoding.submit(0);
  decoding.submit(1, &stop);
  const uint64_t stopped = decoding.tickets[1];
  decoding.submit(1);
  world.wait(decoding.tickets[0]);
  const kv_status status = wait_for(world, stopped, KVB_WAIT_FOREVER);
  check(status == KV_CANCELLED, "the stopped step between two others gave " + status_text(status));
  world.wait(decoding.tickets[1]);
  same_bits(decoding.rows[0], wanted.rows[0], "the step before a stopped one");
  same_bits(decoding.rows[1], wanted.rows[1], "the step after a stopped one");
}

// The stop word is set by the trace of the first op.
void stop_during(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host, 0, KVB_PROGRAM_TRACE);
  const std::vector<float> wanted = world.run();
  struct State {
    uint32_t stop = 0, values_after = 0;
  } state;
  world.reset();
  world.data.trace_user = &state;
  world.data.trace = [](void* user, const kvb_trace_record* record) {
    auto& s = *static_cast<State*>(user);
    if (s.stop != 0 && record->what == KVB_TRACE_VALUE) ++s.values_after;
    __atomic_store_n(&s.stop, 1u, __ATOMIC_RELAXED);
  };
  kvb_step step = world.data.view();
  step.stop = &state.stop;
  const uint64_t ticket = world.submit(step);
  const kv_status status = wait_for(world, ticket, KVB_WAIT_FOREVER);
  check(status == KV_CANCELLED, "a step that was stopped at its first op gave " + status_text(status));
  check(state.values_after <= 2, std::to_string(state.values_after) + " ops ran on after the stop");
  check(world.untouched(), "a stopped step wrote its output");
  same_bits(world.run(), wanted, "the step after a stopped one");
}

// The stop word is set by another thread, some time after the submission.
void stop_from_thread(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const Owned<kvb_queue> queue = device.queue();
  constexpr uint32_t kWidth = 128, kLayers = 150;
  ProgramBuilder builder;
  uint32_t x = builder.tokens(kWidth);
  builder.op(KVB_OP_EMBED, {}, {x});
  std::vector<float> identity(size_t{kWidth} * kWidth);
  for (uint32_t i = 0; i < kWidth; ++i) identity[size_t{i} * kWidth + i] = 1;
  const uint32_t w = builder.matrix(kWidth, kWidth, identity);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const uint32_t y = builder.tokens(kWidth);
    builder.op(KVB_OP_LINEAR, {x, w}, {y});
    x = y;
  }
  builder.op(KVB_OP_SELECT_ROWS, {x}, {builder.output(kWidth)});
  const TestProgram program(device, builder, {});
  const Owned<kvb_cache> cache = testing::make_cache(device, queue.get(), {}, {});
  for (int delay_us = 0; delay_us < 4000; delay_us += 500) {
    StepData data;
    TestSequence sequence;
    std::vector<int32_t> ids;
    for (int i = 0; i < 16; ++i) ids.push_back(data.embed(std::vector<float>(kWidth, static_cast<float>(i))));
    data.append(sequence, ids, true);
    kvb_step step = data.view();
    uint32_t stop = 0;
    step.stop = &stop;
    std::vector<float> out(size_t{16} * kWidth, SmallWorld::kUntouched);
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
      __atomic_store_n(&stop, 1u, __ATOMIC_RELAXED);
    });
    uint64_t ticket = 0;
    kv_error error{};
    kv_status status = device.api->queue_submit(queue.get(), program.get(), cache.get(), &step, out.data(), out.size(),
                                                &ticket, &error);
    if (status == KV_OK) status = device.api->queue_wait(queue.get(), ticket, KVB_WAIT_FOREVER, &error);
    stopper.join();
    check(status == KV_OK || status == KV_CANCELLED, "a stopped step gave " + status_text(status));
    for (uint32_t i = 0; i < out.size(); ++i) {
      const float wanted = status == KV_OK ? static_cast<float>(i / kWidth) : SmallWorld::kUntouched;
      check(out[i] == wanted,
            "output " + std::to_string(i) + " of a step with " + status_text(status) + " is " + std::to_string(out[i]));
    }
  }
}

// A small model on a device that others use too.
std::vector<float> decode_on(const TestDevice& device, uint32_t steps) {
  const testing::CacheSpec spec = small_cache(device);
  const Owned<kvb_queue> queue = device.queue(2);
  const TestProgram program(device, SmallModel::program({}), spec);
  const Owned<kvb_cache> cache = testing::make_cache(device, queue.get(), spec, {6, 6});
  TestSequence sequence{0, {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}}};
  std::vector<float> all;
  for (uint32_t i = 0; i < steps; ++i) {
    StepData data;
    data.append(sequence, {static_cast<int32_t>(i % 11)});
    const std::vector<float> row = testing::run_step(device, queue.get(), program, cache.get(), data);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

// Runs `body` on `count` threads; the first sentence of a failure is this case's.
void on_threads(uint32_t count, const std::function<void(uint32_t)>& body) {
  std::vector<std::string> failures(count);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const std::exception& exception) {
        failures[i] = exception.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) check(failure.empty(), failure);
}

void two_queues(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const std::vector<float> wanted = decode_on(device, 16);
  on_threads(2, [&](uint32_t) {
    for (int round = 0; round < 5; ++round) same_bits(decode_on(device, 16), wanted, "a queue beside another one");
  });
}

void two_instances(Subject& subject) {
  TestHost first_host, second_host;
  const TestDevice first = subject.open(first_host), second = subject.open(second_host);
  const std::vector<float> wanted = decode_on(first, 16);
  on_threads(2, [&](uint32_t i) {
    same_bits(decode_on(i == 0 ? first : second, 16), wanted, "an instance beside another one");
  });
}

void device_calls_on_threads(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const testing::CacheSpec spec = small_cache(device);
  const ProgramBuilder builder = SmallModel::program({});
  on_threads(4, [&](uint32_t) {
    for (int round = 0; round < 20; ++round) {
      const Owned<kvb_queue> queue = device.queue(1);
      const TestProgram program(device, builder, spec);
      const Owned<kvb_cache> cache = testing::make_cache(device, queue.get(), spec, {2, 1});
      device.query(KVB_QUERY_MEMORY_USED);
      kvb_device_info info{};
      info.struct_size = sizeof info;
      succeeds("device_info", [&](kv_error* e) { return device.api->device_info(device.instance(), 0, &info, e); });
      const TestDevice other = subject.open(host);
    }
  });
  check(device.query(KVB_QUERY_MEMORY_USED) == 0, "bytes are counted after everything has ended");
}

void queue_moves_between_threads(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  for (int i = 0; i < 4; ++i) {
    on_threads(1, [&](uint32_t) { same_bits(world.run(), wanted, "a queue on another thread"); });
  }
}

// The application's executor: bodies one after another from the last to the first, with another rounding mode.
struct BackwardExecutor {
  std::atomic<uint32_t> calls{0};
  std::atomic<uint32_t> rounding_lost{0};

  static void run(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
    auto& self = *static_cast<BackwardExecutor*>(user);
    ++self.calls;
    const int before = std::fegetround();
    std::fesetround(FE_UPWARD);
    for (uint32_t i = count; i-- > 0;) {
      body(arg, i);
      if (std::fegetround() != FE_UPWARD) ++self.rounding_lost;
      std::fesetround(FE_UPWARD);
    }
    std::fesetround(before);
  }
};

void executor(Subject& subject) {
  std::vector<float> wanted;
  {
    TestHost host;
    wanted = decode_on(subject.open(host), 16);
  }
  BackwardExecutor backward;
  TestHost host;
  host.table.parallel_for = BackwardExecutor::run;
  host.table.parallel_user = &backward;
  const uint32_t threads = thread_count();
  const TestDevice device = subject.open(host);
  const Owned<kvb_queue> queue = device.queue(4);
  same_bits(decode_on(device, 16), wanted, "a step on the application's executor");
  check(backward.rounding_lost == 0, "a body left the executor's thread with another rounding mode");
  kvb_device_info info{};
  info.struct_size = sizeof info;
  succeeds("device_info", [&](kv_error* e) { return device.api->device_info(device.instance(), 0, &info, e); });
  check(info.kind != KVB_DEVICE_CPU || thread_count() <= threads,
        std::to_string(thread_count() - threads) + " threads were started beside the application's executor");
}

void executor_of_threads(Subject& subject) {
  std::vector<float> wanted;
  {
    TestHost host;
    wanted = decode_on(subject.open(host), 16);
  }
  TestHost host;
  host.table.parallel_for = [](void*, uint32_t count, kv_parallel_body_fn body, void* arg) {
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < count; ++i) threads.emplace_back(body, arg, i);
    if (count > 0) body(arg, 0);
    for (std::thread& thread : threads) thread.join();
  };
  same_bits(decode_on(subject.open(host), 4), {wanted.begin(), wanted.begin() + 4 * SmallModel::kVocab},
            "a step on an executor of threads");
}

void threads_end(Subject& subject) {
  const auto round = [&] {
    TestHost host;
    decode_on(subject.open(host), 2);
  };
  round();  // a driver may start threads of its own, once
  const uint32_t threads = thread_count();
  for (int i = 0; i < 10; ++i) round();
  check(thread_count() <= threads, "there are " + std::to_string(thread_count()) + " threads after the devices were " +
                                       "closed, there were " + std::to_string(threads));
}

class OddFloatingPoint {
 public:
  OddFloatingPoint() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__) || defined(__i386__)
    _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
    std::feclearexcept(FE_ALL_EXCEPT);
  }
  ~OddFloatingPoint() { std::fesetenv(&saved_); }

  static void expect_kept(const char* call) {
    check(std::fegetround() == FE_UPWARD, std::string(call) + " changed the rounding mode");
    check(std::fetestexcept(FE_ALL_EXCEPT) == 0, std::string(call) + " raised floating-point exceptions");
#if defined(__x86_64__) || defined(__i386__)
    check((_mm_getcsr() & 0x8040) == 0x8040, std::string(call) + " changed the treatment of denormals");
#endif
  }

 private:
  std::fenv_t saved_;
};

void floating_point_state(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host, 2);
  const std::vector<float> wanted = world.run();
  world.reset();
  const kvb_step step = world.data.view();
  std::vector<float> row(SmallModel::kKvHeads * SmallModel::kHeadDim);
  const kvb_cache_rows rows{sizeof rows, 0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1, 0};
  uint64_t ticket = 0;
  kv_error error{};
  {
    const OddFloatingPoint odd;
    const kv_status submitted = world.submit(step, &ticket, &error);
    OddFloatingPoint::expect_kept("queue_submit");
    const kv_status waited = wait_for(world, ticket, KVB_WAIT_FOREVER, &error);
    OddFloatingPoint::expect_kept("queue_wait");
    const kv_status read = world.api().cache_read_rows(world.queue.get(), world.cache.get(), &rows, row.data(),
                                                       row.size() * sizeof(float), &error);
    OddFloatingPoint::expect_kept("cache_read_rows");
    check(submitted == KV_OK && waited == KV_OK && read == KV_OK, std::string("a call failed: ") + error.message);
    const TestProgram program(world.device, world.builder, world.spec);
    OddFloatingPoint::expect_kept("program_compile or weight_create");
  }
  same_bits(world.out, wanted, "a step of a thread in an odd floating-point state");
}

}  // namespace

void add_async_cases(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("async/") + name, obligations, Profile::kCore, run});
  };
  add("tickets_rise", "KVB-23", tickets_rise);
  add("wait_times", "KVB-23", wait_times);
  add("unknown_tickets", "KVB-7 KVB-23", unknown_tickets);
  add("many_pending", "KVB-23", many_pending);
  add("destroy_pending", "KVB-25", destroy_pending);
  add("step_is_copied", "KVB-22", step_is_copied);
  add("stop_before", "KVB-22 KVB-24", stop_before);
  add("stop_among_others", "KVB-23 KVB-24", stop_among_others);
  add("stop_during", "KVB-24", stop_during);
  add("stop_from_thread", "KVB-22 KVB-24", stop_from_thread);
  add("two_queues", "KVB-10", two_queues);
  add("two_instances", "KVB-10", two_instances);
  add("device_calls_on_threads", "KVB-10", device_calls_on_threads);
  add("queue_moves_between_threads", "KVB-10", queue_moves_between_threads);
  add("executor", "KVB-6 KVB-27", executor);
  add("executor_of_threads", "KVB-27", executor_of_threads);
  add("threads_end", "KVB-25", threads_end);
  add("floating_point_state", "KVB-6", floating_point_state);
}

}  // namespace kvasir::conformance
