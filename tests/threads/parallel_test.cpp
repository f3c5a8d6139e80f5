// SPDX-License-Identifier: MIT
//
// Contexts, models and runtimes on many threads at once give what they give one after another. (Case P13.)
#include "support.h"

namespace kvasir::test {
namespace {

// `steps` random calls on a context: prompts, single steps of some sequences together, forks, truncations, releases.
// What they return and yield goes into the hash, refusals too.
class Walk {
 public:
  Walk(kv_context* context, uint32_t seed, uint32_t vocab) : context_(context), rng_(seed), vocab_(vocab) {}

  uint64_t run(uint32_t steps) {
    for (uint32_t i = 0; i < steps; i++) step();
    return hash_.value();
  }
  void step() {
    switch (random(8)) {
      case 0:
      case 1: prompt(); break;
      case 2: fork(); break;
      case 3: truncate(); break;
      case 4: release(); break;
      default: decode();
    }
  }
  uint64_t hash() const { return hash_.value(); }

 private:
  uint32_t random(uint64_t end) { return static_cast<uint32_t>(rng_() % end); }
  int32_t token() { return static_cast<int32_t>(random(vocab_)); }
  size_t pick() { return random(alive_.size()); }
  uint64_t length(kv_sequence sequence) { return length_of(context_, sequence); }

  void note(const kv_step_result& result) {
    hash_.number(static_cast<uint64_t>(result.status));
    hash_.number(result.length);
    hash_.floats(result.rows, result.width);
  }

  void prompt() {
    std::vector<int32_t> tokens(1 + random(12));
    for (int32_t& t : tokens) t = token();
    kv_step_result result = sized<kv_step_result>();
    hash_.number(static_cast<uint64_t>(
        kv_prefill(context_, alive_[pick()], tokens.data(), tokens.size(), nullptr, &result, nullptr)));
    note(result);
  }
  void decode() {
    const size_t count = 1 + random(alive_.size());
    std::vector<kv_decode_input> inputs;
    std::vector<kv_step_result> results(count, sized<kv_step_result>());
    for (size_t i = 0; i < count; i++) inputs.push_back({alive_[i], token(), 0});
    hash_.number(
        static_cast<uint64_t>(kv_decode_step(context_, inputs.data(), count, nullptr, results.data(), nullptr)));
    for (const kv_step_result& result : results) note(result);
  }
  void fork() {
    const kv_sequence from = alive_[pick()];
    const uint64_t at = random(length(from) + 1);
    if (alive_.size() == 5) return release();
    kv_sequence made = 0;
    if (kv_sequence_fork(context_, from, at, &made, nullptr) == KV_OK) alive_.push_back(made);
    hash_.number(made);
  }
  void truncate() {
    const kv_sequence sequence = alive_[pick()];
    const uint64_t at = random(length(sequence) + 1);
    hash_.number(static_cast<uint64_t>(kv_sequence_truncate(context_, sequence, at, nullptr)));
  }
  void release() {
    if (alive_.size() == 1) return truncate();
    hash_.number(static_cast<uint64_t>(kv_sequence_release(context_, alive_.back(), nullptr)));
    alive_.pop_back();
  }

  kv_context* context_;
  std::mt19937 rng_;
  uint32_t vocab_;
  std::vector<kv_sequence> alive_ = {KV_DEFAULT_SEQUENCE};
  Hash hash_;
};

constexpr uint32_t kThreads = 8, kSteps = 200, kVocab = 64;

uint64_t whole_walk(kv_model* model, const char* device, uint32_t seed, uint32_t threads, uint32_t steps = kSteps) {
  return Walk(make_context(model, options_for(device, threads)).get(), seed, kVocab).run(steps);
}

class Parallel : public ::testing::TestWithParam<std::string> {
 protected:
  const char* device() const { return GetParam().c_str(); }
};

TEST_P(Parallel, ContextsOfOneModel) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  std::vector<uint64_t> serial(kThreads), parallel(kThreads);
  for (uint32_t i = 0; i < kThreads; i++) serial[i] = whole_walk(model.get(), device(), i, 1);
  run_together(kThreads, [&](uint32_t i) { parallel[i] = whole_walk(model.get(), device(), i, 1 + i % 3); });
  EXPECT_EQ(parallel, serial);
}

TEST_P(Parallel, SeveralRuntimesAndModels) {
  const auto session = [&](uint32_t i) {
    const RuntimePtr runtime = make_runtime();
    const uint32_t types[] = {KV_TYPE_F32, KV_TYPE_Q8_0, KV_TYPE_F16, KV_TYPE_Q4_0};
    const ModelPtr one = typed_model(runtime.get(), types[i % 4], 32, i), other = typed_model(runtime.get(), types[1]);
    const ContextPtr a = make_context(one.get(), options_for(device(), 2));
    const ContextPtr b = make_context(other.get(), options_for(device()));
    Walk first(a.get(), i, kVocab), second(b.get(), i + 1, kVocab);
    for (int step = 0; step < 25; step++) {
      first.step();
      second.step();
    }
    return first.hash() ^ second.hash();
  };
  std::vector<uint64_t> serial(4), parallel(4);
  for (uint32_t i = 0; i < 4; i++) serial[i] = session(i);
  run_together(4, [&](uint32_t i) { parallel[i] = session(i); });
  EXPECT_EQ(parallel, serial);
}

// Some threads decode while others make contexts and throw them away.
TEST_P(Parallel, ComingAndGoing) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const uint64_t want = whole_walk(model.get(), device(), 5, 1, 80);
  uint64_t got[2] = {};
  std::atomic<int> walking{2};
  run_together(4, [&](uint32_t i) {
    if (i < 2) {
      got[i] = whole_walk(model.get(), device(), 5, 2, 80);
      walking--;
      return;
    }
    do {
      const ContextPtr brief = make_context(model.get(), options_for(device(), i));
      if (i == 3) {
        EXPECT_EQ(prefill(brief.get(), 0, {1, 2, 3}).size(), kVocab);
      }
    } while (walking > 0);
  });
  EXPECT_EQ(got[0], want);
  EXPECT_EQ(got[1], want);
}

TEST_P(Parallel, FirstContextsMakeTheWeightsOnce) {
  for (int round = 0; round < 5; round++) {
    const RuntimePtr runtime = make_runtime();
    const ModelPtr model = random_model(runtime.get(), small_config(), 7);
    std::atomic<uint32_t> loaders{0};
    std::vector<std::vector<float>> rows(kThreads);
    run_together(kThreads, [&](uint32_t i) {
      bool mine = false;
      kv_model_options load = sized<kv_model_options>();
      load.progress_user = &mine;
      load.progress = [](void* user, uint64_t, uint64_t) { *static_cast<bool*>(user) = true; };
      kv_context_options o = options_for(device(), 1);
      o.load = &load;
      rows[i] = prefill(make_context(model.get(), o).get(), 0, {3, 1, 4, 1, 5});
      if (mine) loaders++;
    });
    EXPECT_EQ(loaders, 1U);
    for (const auto& row : rows) EXPECT_TRUE(same_bits(row, rows[0]));
  }
}

// Looking, planning, preparing and loading beside a context that computes.
TEST_P(Parallel, EverythingElseBesideAWalk) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), demo_model());
  kv_tokenizer_info tokenizer = sized<kv_tokenizer_info>();
  ASSERT_EQ(kv_tokenizer_get_info(kv_model_tokenizer(model.get()), &tokenizer, nullptr), KV_OK);
  const auto walk = [&] {
    const ContextPtr context = make_context(model.get(), options_for(device(), 2));
    return Walk(context.get(), 9, tokenizer.vocab).run(KV_TEST_SANITIZED ? 15 : 40);
  };
  const uint64_t want = walk();
  uint64_t got = 0;
  std::atomic<bool> done{false};
  run_together(4, [&](uint32_t i) {
    if (i == 0) {
      got = walk();
      done = true;
    }
    while (!done) {
      Error e;
      kv_backend_report* report = nullptr;
      if (i == 1) {
        EXPECT_EQ(kv_backend_report_create(runtime.get(), &report, &e), KV_OK) << e.message;
        EXPECT_GE(kv_backend_report_count(report), 2U);
        kv_backend_report_release(report);
      } else if (i == 2) {
        kv_memory_plan plan = sized<kv_memory_plan>();
        const kv_context_options o = options_for(device());
        EXPECT_EQ(kv_context_plan(model.get(), &o, &plan, &e), KV_OK) << e.message;
        EXPECT_EQ(kv_model_prepare(model.get(), "ref", nullptr, &e), KV_OK) << e.message;
        EXPECT_EQ(kv_model_prepare(model.get(), "cpu", nullptr, &e), KV_OK) << e.message;
      } else {
        const ModelPtr again = load_model(runtime.get(), demo_model());
        int32_t tokens[32];
        size_t count = 0;
        EXPECT_EQ(kv_tokenize(kv_model_tokenizer(model.get()), "Once upon a time", 16, 0, tokens, 32, &count, &e),
                  KV_OK);
        EXPECT_EQ(kv_model_prepare(again.get(), device(), nullptr, &e), KV_OK) << e.message;
      }
    }
  });
  EXPECT_EQ(got, want);
}

TEST_P(Parallel, AContextMovesBetweenThreads) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const uint64_t want = whole_walk(model.get(), device(), 11, 2);
  ContextPtr context;
  std::thread([&] { context = make_context(model.get(), options_for(device(), 2)); }).join();
  Walk walk(context.get(), 11, kVocab);
  for (uint32_t part = 0; part < 20; part++) std::thread([&] { walk.run(kSteps / 20); }).join();
  EXPECT_EQ(walk.hash(), want);
  std::thread([&] { context.reset(); }).join();
}

INSTANTIATE_TEST_SUITE_P(Backends, Parallel, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

TEST(ParallelLoad, TheSameFileOnManyThreads) {
  const RuntimePtr runtime = make_runtime();
  uint64_t hash[6] = {};
  run_together(6, [&](uint32_t i) {
    const ModelPtr model = load_model(runtime.get(), demo_model());
    kv_context_options o = options_for("cpu", 1);
    const std::vector<float> row = prefill(make_context(model.get(), o).get(), 0, {1, 2, 3});
    Hash h;
    h.floats(row.data(), row.size());
    hash[i] = h.value();
  });
  for (const uint64_t h : hash) EXPECT_EQ(h, hash[0]);
}

}  // namespace
}  // namespace kvasir::test
