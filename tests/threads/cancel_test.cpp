// SPDX-License-Identifier: MIT
//
// Cancel from a second thread at random moments of every long call, and from a signal handler: state as before, the
// next call gives the right bits, a press is kept until its owner takes it back. (Case P26.)
#include <sys/time.h>

#include "support.h"

namespace kvasir::test {
namespace {

using Microseconds = std::chrono::microseconds;

// Presses after a while, from another thread, unless the call is over first.
class LatePress {
 public:
  LatePress(kv_cancel* cancel, Microseconds delay)
      : thread_([cancel, delay] {
          std::this_thread::sleep_for(delay);
          kv_cancel_set(cancel);
        }) {}
  ~LatePress() { thread_.join(); }

 private:
  std::thread thread_;
};

template <class F>
Microseconds duration_of(F&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<Microseconds>(std::chrono::steady_clock::now() - begin);
}

class CancelAnywhere : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kTries = KV_TEST_SANITIZED != 0 ? 8 : 16;

  RuntimePtr runtime_ = make_runtime();
  CancelPtr cancel_ = make_cancel();
  std::mt19937 rng_{5};
  Error e;
  int stopped_ = 0;

  const char* device() const { return GetParam().c_str(); }
  // Some moment of a call that takes `whole`.
  Microseconds moment(Microseconds whole) { return Microseconds(rng_() % (static_cast<uint64_t>(whole.count()) + 1)); }
  void expect_ok_or_cancelled(kv_status status) {
    EXPECT_TRUE(status == KV_OK || status == KV_CANCELLED) << kv_status_name(status) << ": " << e.message;
    if (status == KV_CANCELLED) stopped_++;
  }
  ~CancelAnywhere() override { std::printf("  %d of %d calls were stopped on the way\n", stopped_, kTries); }
};

TEST_P(CancelAnywhere, Load) {
  kv_model_options o = sized<kv_model_options>();
  o.cancel = cancel_.get();
  const Microseconds whole = duration_of([&] { load_model(runtime_.get(), demo_model()); });
  for (int i = 0; i < kTries; i++) {
    kv_cancel_reset(cancel_.get());
    kv_model* model = nullptr;
    {
      const LatePress press(cancel_.get(), moment(whole));
      expect_ok_or_cancelled(kv_model_load_file(runtime_.get(), demo_model().c_str(), &o, &model, &e));
    }
    kv_model_release(model);
    FAILS(KV_CANCELLED, "cancelled", kv_model_load_file(runtime_.get(), demo_model().c_str(), &o, &model, &e));
  }
}

TEST_P(CancelAnywhere, PrepareAndCreate) {
  const ModelPtr again = typed_model(runtime_.get(), KV_TYPE_F32, 128);
  const Microseconds whole = duration_of([&] { make_context(again.get(), options_for(device(), 1)); });
  const std::vector<float> want = prefill(make_context(again.get(), options_for(device(), 1)).get(), 0, {1, 2});
  kv_model_options load = sized<kv_model_options>();
  load.cancel = cancel_.get();
  for (int i = 0; i < kTries; i++) {
    kv_cancel_reset(cancel_.get());
    const ModelPtr model = typed_model(runtime_.get(), KV_TYPE_F32, 128);
    kv_context_options o = options_for(device(), 1);
    o.load = &load;
    kv_context* context = nullptr;
    {
      const LatePress press(cancel_.get(), moment(whole));
      if (i % 2 == 0) expect_ok_or_cancelled(kv_context_create(model.get(), &o, &context, &e));
      if (i % 2 == 1) expect_ok_or_cancelled(kv_model_prepare(model.get(), device(), &load, &e));
    }
    kv_context_release(context);
    // The press is still there, whether the weights are or not.
    FAILS(KV_CANCELLED, "cancelled", kv_context_create(model.get(), &o, &context, &e));
    FAILS(KV_CANCELLED, "cancelled", kv_model_prepare(model.get(), device(), &load, &e));
    kv_cancel_reset(cancel_.get());
    OK(kv_context_create(model.get(), &o, &context, &e));
    EXPECT_TRUE(same_bits(prefill(ContextPtr(context).get(), 0, {1, 2}), want));
  }
}

TEST_P(CancelAnywhere, PrefillAndDecode) {
  const ModelPtr model = random_model(runtime_.get(), small_config(), 7);
  const std::vector<int32_t> held = random_tokens(21, 64, 1), more = random_tokens(300, 64, 2);
  kv_context_options o = options_for(device(), 2);
  o.max_batch_tokens = 32;
  const ContextPtr context = make_context(model.get(), o), fresh = make_context(model.get(), o);
  prefill(context.get(), 0, held);
  prefill(fresh.get(), 0, held);
  const std::vector<float> want_next = decode(fresh.get(), 0, 9);
  OK(kv_sequence_truncate(fresh.get(), 0, held.size(), &e));
  const Microseconds whole = duration_of([&] { prefill(fresh.get(), 0, more); });

  kv_step_options step = sized<kv_step_options>();
  step.cancel = cancel_.get();
  for (int i = 0; i < kTries; i++) {
    kv_cancel_reset(cancel_.get());
    const LatePress press(cancel_.get(), moment(whole));
    if (i % 2 == 0) {
      const kv_status status = kv_prefill(context.get(), 0, more.data(), more.size(), &step, nullptr, &e);
      expect_ok_or_cancelled(status);
      EXPECT_EQ(length_of(context.get(), 0), held.size() + (status == KV_OK ? more.size() : 0));
    } else {  // steps until the press
      uint64_t done = 0;
      kv_status status = KV_OK;
      for (; status == KV_OK && done < 400; done += status == KV_OK ? 1 : 0) {
        const kv_decode_input input = {0, static_cast<int32_t>(done % 64), 0};
        status = kv_decode_step(context.get(), &input, 1, &step, nullptr, &e);
      }
      expect_ok_or_cancelled(status);
      EXPECT_EQ(length_of(context.get(), 0), held.size() + done);
    }
    OK(kv_sequence_truncate(context.get(), 0, held.size(), &e));
    EXPECT_TRUE(same_bits(decode(context.get(), 0, 9), want_next)) << "try " << i;
    OK(kv_sequence_truncate(context.get(), 0, held.size(), &e));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CancelAnywhere, ::testing::ValuesIn(backends()),
                         [](const auto& p) { return p.param; });

// ---- signals --------------------------------------------------------------------------------------------------------

kv_cancel* pressed_by_signal = nullptr;
std::atomic<int> signals{0};

// SIGALRM every so often, without SA_RESTART: system calls are interrupted too.
class AlarmClock {
 public:
  explicit AlarmClock(long microseconds) {
    struct sigaction action {};
    action.sa_handler = [](int) {
      signals.fetch_add(1, std::memory_order_relaxed);
      if (pressed_by_signal != nullptr) kv_cancel_set(pressed_by_signal);
    };
    sigaction(SIGALRM, &action, &before_);
    const itimerval interval = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &interval, nullptr);
  }
  ~AlarmClock() {
    const itimerval off = {};
    setitimer(ITIMER_REAL, &off, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST(CancelBySignal, AHandlerMayPress) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const ContextPtr context = make_context(model.get(), options_for("cpu", 2));
  const CancelPtr cancel = make_cancel();
  const std::vector<int32_t> tokens = random_tokens(400, 64, 2);
  kv_step_options o = sized<kv_step_options>();
  o.cancel = cancel.get();
  Error e;
  int stopped = 0;
  {
    pressed_by_signal = cancel.get();
    const AlarmClock clock(3000);
    for (int i = 0; i < 20000 && stopped < 5; i++) {
      const kv_status status = kv_prefill(context.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e);
      ASSERT_TRUE(status == KV_OK || status == KV_CANCELLED) << e.message;
      ASSERT_EQ(length_of(context.get(), 0), status == KV_OK ? tokens.size() : 0);
      if (status == KV_CANCELLED) stopped++;
      kv_cancel_reset(cancel.get());
      OK(kv_sequence_truncate(context.get(), 0, 0, &e));
    }
  }
  pressed_by_signal = nullptr;
  EXPECT_EQ(stopped, 5);
  EXPECT_TRUE(same_bits(prefill(context.get(), 0, tokens),
                        prefill(make_context(model.get(), options_for("cpu", 1)).get(), 0, tokens)));
}

TEST(CancelBySignal, InterruptedSystemCallsAreNoFailures) {
  signals = 0;
  const AlarmClock clock(200);
  for (int i = 0; i < 5 || (i < 1000 && signals < 20); i++) {
    const RuntimePtr runtime = make_runtime();
    const ModelPtr model = load_model(runtime.get(), demo_model());
    const ContextPtr context = make_context(model.get(), options_for("cpu", 2));
    EXPECT_FALSE(prefill(context.get(), 0, {1, 2, 3}).empty());
  }
  EXPECT_GE(signals, 20);
}

}  // namespace
}  // namespace kvasir::test
