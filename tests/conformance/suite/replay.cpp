// SPDX-License-Identifier: MIT
//
// The group "replay": a program that is submitted a thousand times, interleaved with another one, its pages moved
// midway. Every so often the same step runs through a freshly compiled program; the bits must be the same.
#include "suite/op_case.h"
#include "suite/tiny_model.h"

namespace kvasir::conformance {
namespace {

constexpr uint32_t kSubmits = 1000, kFreshEvery = 25, kMoveAt = 500;

// Copies every page that is in use to a free one, and forgets the old.
void move_pages(TinyWorld& world) {
  const uint32_t rows = world.shape.page_tokens;
  for (testing::TestSequence& sequence : world.sequences) {
    for (size_t i = 0; i < sequence.pages[0].size(); ++i) {
      const uint32_t from = sequence.pages[0][i], to = world.free_pages.front();
      world.free_pages.erase(world.free_pages.begin());
      for (uint32_t group = 0; group < world.spec.groups.size(); ++group) {
        succeeds("cache_copy_rows", [&](kv_error* error) {
          return world.device.api->cache_copy_rows(world.queue.get(), world.cache.get(), group, from, to, 0, rows,
                                                   error);
        });
        world.poison_page(group, from);
        sequence.pages[group][i] = to;
      }
      world.free_pages.push_back(from);
    }
  }
}

// What both worlds get at submit `i`: one or two sequences advance by a few tokens; full ones start again.
std::vector<Append> appends_at(uint32_t i, TinyWorld& world, Random& random) {
  std::vector<Append> appends{{i % 3, random.tokens(i % 7 == 0 ? 5 : 1, TinyShape::kVocab)}};
  if (i % 2 == 0) appends.push_back({3, random.tokens(1, TinyShape::kVocab)});
  for (const Append& append : appends) {
    testing::TestSequence& sequence = world.sequences[append.sequence];
    if (sequence.length + append.tokens.size() <= world.shape.limits.length) continue;
    sequence.length = 0;
  }
  return appends;
}

void run_replay(Subject& subject, uint32_t weight_type, uint32_t compute_mode, uint32_t window) {
  TinyShape shape;
  shape.weight_type = weight_type;
  shape.compute_mode = compute_mode;
  shape.window = window;
  shape.limits = {8, 8, 4, 64};
  {
    testing::TestHost host;
    const testing::TestDevice device = subject.open(host);
    shape.cache_type = plain_cache_type(device);
    shape.page_tokens = page_tokens_near(device, 16);
  }
  TinyShape other = shape;
  other.seed = 2;
  other.members = kAllMembers & ~uint32_t{kNormQ | kLinearOut};
  TinyWorld world(subject, shape), fresh(subject, shape), second(subject, other);
  Random random(1), random_again(1);
  for (uint32_t i = 0; i < kSubmits; ++i) {
    if (i == kMoveAt) move_pages(world);
    if (i % kFreshEvery == 0) fresh.recompile();
    const std::vector<float> got = world.run(appends_at(i, world, random));
    const std::vector<float> want = fresh.run(appends_at(i, fresh, random_again));
    check_same(world, got, want, "submit " + std::to_string(i), true);
    if (i % 3 != 0) continue;
    testing::TestSequence& sequence = second.sequences[0];
    if (sequence.length == other.limits.length) sequence.length = 0;
    second.run({{0, {static_cast<int32_t>(i % TinyShape::kVocab)}}});
  }
}

// Two programs on one queue and one cache: each finds what the other stored.
void run_two_programs(Subject& subject) {
  TinyShape shape;
  shape.limits = {8, 8, 4, 64};
  {
    testing::TestHost host;
    const testing::TestDevice device = subject.open(host);
    shape.cache_type = plain_cache_type(device);
    shape.page_tokens = page_tokens_near(device, 16);
  }
  TinyWorld one(subject, shape), alternating(subject, shape);
  testing::ProgramBuilder wide = alternating.builder;
  wide.limits.tokens = wide.limits.outputs = shape.limits.tokens;
  std::unique_ptr<testing::TestProgram> spare =
      std::make_unique<testing::TestProgram>(alternating.device, wide, alternating.spec);
  Random random(4);
  for (uint32_t i = 0; i < 60; ++i) {
    const std::vector<int32_t> token = random.tokens(1, TinyShape::kVocab);
    const std::vector<float> want = one.run({{0, token}});
    std::swap(alternating.program, spare);
    check_same(one, alternating.run({{0, token}}), want, "step " + std::to_string(i), true);
  }
}

}  // namespace

void add_replay_cases(std::vector<Case>& cases) {
  cases.push_back({"replay/F32/EXACT", "KVB-22 KVB-23", Profile::kCore,
                   [](Subject& subject) { run_replay(subject, KV_TYPE_F32, KV_COMPUTE_EXACT, 0); }});
  cases.push_back({"replay/F16/FAST", "KVB-22 KVB-23", Profile::kCore,
                   [](Subject& subject) { run_replay(subject, KV_TYPE_F16, KV_COMPUTE_FAST, 0); }});
  cases.push_back({"replay/F32/window", "KVB-22 KVB-23", Profile::kFull,
                   [](Subject& subject) { run_replay(subject, KV_TYPE_F32, KV_COMPUTE_EXACT, 13); }});
  cases.push_back({"replay/two-programs", "KVB-23", Profile::kCore, run_two_programs});
}

}  // namespace kvasir::conformance
