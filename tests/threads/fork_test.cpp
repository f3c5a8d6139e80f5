// SPDX-License-Identifier: MIT
//
// fork() with live contexts: the child gets an answer, new objects work there, releases and exits do not hang, and the
// parent goes on as if nothing had happened. A child that hangs is killed by its alarm clock and fails the test.
#include <functional>

#include "support.h"

namespace kvasir::test {
namespace {

// Exit codes of the child; 0 is fine.
enum { kBadStatus = 10, kBadBits = 11, kNoContext = 12, kBadSentence = 13 };

class Fork : public ::testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  ContextPtr context_ = make_context(model_.get(), options());
  const std::vector<float> first_ = prefill(context_.get(), 0, {1, 2, 3});

  kv_context_options options() const { return options_for(GetParam().c_str(), 2); }
  bool has_threads() const { return GetParam() == "cpu"; }

  // The parent's context computes on.
  void expect_parent_unharmed() {
    const ContextPtr fresh = make_context(model_.get(), options());
    EXPECT_TRUE(same_bits(prefill(fresh.get(), 0, {1, 2, 3}), first_));
    EXPECT_TRUE(same_bits(decode(context_.get(), 0, 4), decode(fresh.get(), 0, 4)));
  }

  // In a child: a context made there works.
  int use_new_context() {
    const kv_context_options o = options();
    kv_context* context = nullptr;
    if (kv_context_create(model_.get(), &o, &context, nullptr) != KV_OK) return kNoContext;
    const int32_t tokens[] = {1, 2, 3};
    kv_step_result result = sized<kv_step_result>();
    if (kv_prefill(context, 0, tokens, 3, nullptr, &result, nullptr) != KV_OK) return kBadStatus;
    const bool right = same_bits({result.rows, result.rows + result.width}, first_);
    kv_context_release(context);
    return right ? 0 : kBadBits;
  }
};

TEST_P(Fork, AnInheritedContextAnswers) {
  const int result = in_child([&] {
    Error e;
    const int32_t token = 4;
    const kv_status status = kv_prefill(context_.get(), 0, &token, 1, nullptr, nullptr, &e);
    if (!has_threads()) return status == KV_OK ? 0 : int{kBadStatus};
    if (status != KV_DEVICE_LOST) return int{kBadStatus};
    const std::string sentence = e.message;
    const bool both = sentence.find(std::to_string(getppid())) != std::string::npos &&
                      sentence.find(std::to_string(getpid())) != std::string::npos;
    return both ? 0 : int{kBadSentence};
  });
  EXPECT_EQ(result, 0);
  expect_parent_unharmed();
}

TEST_P(Fork, LookingAtAnInheritedContext) {
  const int result = in_child([&] {
    kv_context_info info = sized<kv_context_info>();
    uint64_t length = 0;
    if (kv_context_get_info(context_.get(), &info, nullptr) != KV_OK) return int{kBadStatus};
    if (kv_sequence_length(context_.get(), 0, &length, nullptr) != KV_OK || length != 3) return int{kBadStatus};
    float row[64];
    const kv_status status = kv_cache_read(context_.get(), 0, 0, KV_CACHE_K, 0, 1, row, 64, nullptr);
    return status == KV_OK || status == KV_DEVICE_LOST ? 0 : int{kBadStatus};
  });
  EXPECT_EQ(result, 0);
  expect_parent_unharmed();
}

TEST_P(Fork, ANewContextInTheChild) {
  EXPECT_EQ(in_child([&] { return use_new_context(); }), 0);
  expect_parent_unharmed();
}

TEST_P(Fork, ReleasedInTheChild) {
  EXPECT_EQ(in_child([&] {
              context_.reset();
              const int result = use_new_context();
              model_.reset();
              runtime_.reset();
              return result;
            }),
            0);
  expect_parent_unharmed();
}

TEST_P(Fork, ChildAndGrandchild) {
  EXPECT_EQ(in_child([&] {
              if (const int result = use_new_context(); result != 0) return result;
              const ContextPtr own = make_context(model_.get(), options());
              return in_child([&] { return use_new_context(); });
            }),
            0);
  expect_parent_unharmed();
}

// exit() in the child, with everything alive there.
TEST_P(Fork, TheChildExits) {
  EXPECT_EQ(in_child([]() -> int { std::exit(0); }), 0);
  EXPECT_EQ(in_child([&]() -> int {
              static std::atomic<kv_context*> kept{nullptr};  // no leak: somebody still knows it
              kept = make_context(model_.get(), options()).release();
              std::exit(7);
            }),
            7);
  expect_parent_unharmed();
}

// Another thread is in the middle of a call when the process forks: in the child its context stays in use for ever,
// which is an answer.
TEST_P(Fork, WhileAnotherThreadComputes) {
  Gate gate;
  const std::vector<int32_t> tokens = random_tokens(40, 64, 1);
  kv_step_options o = sized<kv_step_options>();
  o.progress_user = &gate;
  o.progress = [](void* user, uint64_t, uint64_t) { static_cast<Gate*>(user)->enter(); };
  const ContextPtr other = make_context(model_.get(), options());
  std::thread computing(
      [&] { EXPECT_EQ(kv_prefill(other.get(), 0, tokens.data(), tokens.size(), &o, nullptr, nullptr), KV_OK); });
  gate.await_entered();
  const int result = in_child([&] {
    const int32_t token = 4;
    const kv_status status = kv_prefill(other.get(), 0, &token, 1, nullptr, nullptr, nullptr);
    if (status != KV_BUSY) return int{kBadStatus};
    const int made = use_new_context();
    kv_context* held = other.get();
    kv_context_release(held);
    return made;
  });
  gate.open();
  computing.join();
  EXPECT_EQ(result, 0);
  expect_parent_unharmed();
}

// The weights are being made by a thread that the child does not have.
TEST_P(Fork, WhileWeightsAreBeingMade) {
  Gate gate;
  model_ = random_model(runtime_.get(), small_config(), 7);
  std::thread loading([&] {
    kv_model_options o = sized<kv_model_options>();
    o.progress_user = &gate;
    o.progress = [](void* user, uint64_t, uint64_t) { static_cast<Gate*>(user)->enter(); };
    EXPECT_EQ(kv_model_prepare(model_.get(), GetParam().c_str(), &o, nullptr), KV_OK);
  });
  gate.await_entered();
  const int result = in_child([&] { return use_new_context(); });
  gate.open();
  loading.join();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(prefill(make_context(model_.get(), options()).get(), 0, {1}).size(), 64U);
}

TEST_P(Fork, ManyTimesWithACrewAtWork) {
  if (KV_TEST_SANITIZED != 0) GTEST_SKIP() << "the allocator of sanitizers may be locked by the other thread";
  std::atomic<bool> done{false};
  std::thread busy([&] {
    const ContextPtr own = make_context(model_.get(), options());
    while (!done) {
      EXPECT_EQ(prefill(own.get(), 0, {1, 2, 3}).size(), 64U);
      EXPECT_EQ(kv_sequence_truncate(own.get(), 0, 0, nullptr), KV_OK);
    }
  });
  for (int i = 0; i < 20; i++) {
    EXPECT_EQ(in_child([&] { return use_new_context(); }), 0) << "fork " << i;
  }
  done = true;
  busy.join();
  expect_parent_unharmed();
}

INSTANTIATE_TEST_SUITE_P(Backends, Fork, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
