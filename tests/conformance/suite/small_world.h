// SPDX-License-Identifier: MIT
//
// A small model with everything around it on the backend under test: queue, program, cache, a step of two sequences.
// For the groups about objects, tickets and faults; its numbers are compared with themselves only.
#pragma once

#include <string>
#include <vector>

#include "ref/small_model.h"
#include "suite/expect.h"

namespace kvasir::conformance {

using testing::Limits;
using testing::Owned;
using testing::ProgramBuilder;
using testing::SmallModel;
using testing::StepData;
using testing::TestDevice;
using testing::TestHost;
using testing::TestProgram;
using testing::TestSequence;

inline testing::CacheSpec small_cache(const TestDevice& device) {
  return SmallModel::cache(plain_cache_type(device), page_tokens_near(device, 4));
}

struct SmallWorld {
  static constexpr float kUntouched = 42.25f;
  static constexpr uint32_t kPages = 6;

  SmallWorld(Subject& subject, TestHost& host, uint32_t threads = 0, uint32_t flags = 0)
      : device(subject.open(host)), queue(device.queue(threads)), builder(SmallModel::program({})) {
    builder.flags = flags;
    program = std::make_unique<TestProgram>(device, builder, spec);
    cache = testing::make_cache(device, queue.get(), spec, {kPages, kPages});
    reset();
  }

  const kvb_api& api() const { return *device.api; }

  // Two sequences of 3 and 2 tokens, one of which is an embedding row; every token gives an output row.
  void reset() {
    first = {0, {{0, 2}, {1, 0}}};
    second = {0, {{1, 4}, {2, 3}}};
    data = {};
    data.append(first, {1, data.embed(std::vector<float>(SmallModel::kDim, 0.5f)), 3}, true);
    data.append(second, {4, 5}, true);
    out.assign(size_t{5} * SmallModel::kVocab, kUntouched);
  }

  kv_status submit(const kvb_step& step, uint64_t* ticket, kv_error* error) {
    return api().queue_submit(queue.get(), program->get(), cache.get(), &step, out.data(), out.size(), ticket, error);
  }
  uint64_t submit(const kvb_step& step) {
    uint64_t ticket = 0;
    succeeds("queue_submit", [&](kv_error* error) { return submit(step, &ticket, error); });
    return ticket;
  }
  void wait(uint64_t ticket) {
    succeeds("queue_wait",
             [&](kv_error* error) { return api().queue_wait(queue.get(), ticket, KVB_WAIT_FOREVER, error); });
  }

  // The step from the beginning; its output rows.
  std::vector<float> run() {
    reset();
    const kvb_step step = data.view();
    wait(submit(step));
    return out;
  }

  bool untouched() const {
    return std::all_of(out.begin(), out.end(), [](float value) { return value == kUntouched; });
  }

  TestDevice device;
  testing::CacheSpec spec = small_cache(device);
  Owned<kvb_queue> queue;
  ProgramBuilder builder;
  std::unique_ptr<TestProgram> program;
  Owned<kvb_cache> cache;
  TestSequence first, second;
  StepData data;
  std::vector<float> out;
};

inline void same_bits(const std::vector<float>& actual, const std::vector<float>& wanted, const std::string& what) {
  check(actual.size() == wanted.size(),
        what + ": " + std::to_string(actual.size()) + " values instead of " + std::to_string(wanted.size()));
  for (size_t i = 0; i < actual.size(); ++i) {
    check(std::memcmp(&actual[i], &wanted[i], sizeof(float)) == 0, what + ": value " + std::to_string(i) + " is " +
                                                                       std::to_string(actual[i]) + ", it was " +
                                                                       std::to_string(wanted[i]));
  }
}

// Threads of this process now.
uint32_t thread_count();

}  // namespace kvasir::conformance
