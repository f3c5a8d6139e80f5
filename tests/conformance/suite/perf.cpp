// SPDX-License-Identifier: MIT
//
// The group "perf": a few figures for the report. Nothing fails for being slow.
#include <chrono>

#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/tiny_model.h"

namespace kvasir::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of one call: the best of several, within a small budget.
template <typename Call>
double seconds(Call&& call) {
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(120);
  do {
    const auto start = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  } while (Clock::now() < end);
  return best;
}

// Bytes read per second by a copy in host memory, for comparison.
double copy_speed() {
  const std::vector<unsigned char> from(size_t{32} << 20, 1);
  std::vector<unsigned char> to(from.size());
  return static_cast<double>(from.size()) / seconds([&] { std::memcpy(to.data(), from.data(), from.size()); });
}

// One LINEAR of rows x width for steps of `tokens`; seconds per step.
double linear_seconds(Subject& subject, uint32_t type, uint32_t tokens, uint32_t rows, uint32_t width) {
  OpCase test("perf", tokens, KV_COMPUTE_FAST);
  const uint32_t x = test.input(width), y = test.builder.tokens(rows);
  test.op(KVB_OP_LINEAR, {x, test.builder.weight(test.random.weight(type, rows, width))}, {y});
  test.output(y);
  testing::TestHost host;
  const testing::TestDevice device = subject.open(host);
  require_supported(device, test.builder, test.cache, 1);
  const auto queue = device.queue();
  const testing::TestProgram program(device, test.builder, test.cache);
  const auto cache = testing::make_cache(device, queue.get(), test.cache, {});
  testing::StepData step;
  testing::TestSequence sequence;
  std::vector<int32_t> ids(tokens);
  for (uint32_t t = 0; t < tokens; ++t) ids[t] = static_cast<int32_t>(t);
  step.append(sequence, ids);
  return seconds([&] { testing::run_step(device, queue.get(), program, cache.get(), step); });
}

void measure_linear(Subject& subject, uint32_t type) {
  constexpr uint32_t kRows = 1024, kWidth = 1024, kTokens = 16;
  const double bytes = double{kRows} * kWidth / block_elements(type) * block_bytes(type);
  const double decode = linear_seconds(subject, type, 1, kRows, kWidth);
  const double prefill = linear_seconds(subject, type, kTokens, kRows, kWidth);
  subject.figures.push_back({"decode", bytes / decode / 1e9, "GB/s of weights"});
  subject.figures.push_back({"copy", copy_speed() / 1e9, "GB/s read by memcpy"});
  subject.figures.push_back({"prefill", 2.0 * kRows * kWidth * kTokens / prefill / 1e9, "GFLOP/s"});
}

void measure_submit(Subject& subject) {
  TinyShape shape;
  {
    testing::TestHost host;
    const testing::TestDevice device = subject.open(host);
    shape.cache_type = plain_cache_type(device);
    shape.page_tokens = page_tokens_near(device, 16);
  }
  TinyWorld world(subject, shape);
  testing::StepData step = world.step_of({{0, {1}}});
  subject.figures.push_back({"step", seconds([&] { world.run(step); }) * 1e6, "us for 2 tiny layers"});
}

}  // namespace

void add_perf_cases(std::vector<Case>& cases) {
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_Q8_0, KV_TYPE_Q4_0, KV_TYPE_Q4_K}) {
    cases.push_back({std::string("perf/LINEAR/") + type_label(type), "",
                     type <= KV_TYPE_F16 ? Profile::kCore : Profile::kFull,
                     [=](Subject& subject) { measure_linear(subject, type); }});
  }
  cases.push_back({"perf/submit", "", Profile::kCore, measure_submit});
}

}  // namespace kvasir::conformance
