// SPDX-License-Identifier: MIT
//
// A call held in a callback, and everything that can be called meanwhile: from a second thread and from the callback
// itself. A context answers KV_BUSY and is unharmed; a model answers at once, and a wait for its weights can be stopped.
#include "support.h"

namespace kvasir::test {
namespace {

using Call = std::function<kv_status(kv_context*, kv_error*)>;

// Every call of sections 10 to 13 that takes a context, but for kv_context_release.
std::vector<std::pair<const char*, Call>> context_calls() {
  static constexpr int32_t kToken = 1;
  return {
      {"kv_context_get_info",
       [](kv_context* c, kv_error* e) {
         kv_context_info info = sized<kv_context_info>();
         return kv_context_get_info(c, &info, e);
       }},
      {"kv_sequence_create",
       [](kv_context* c, kv_error* e) {
         kv_sequence made = 0;
         return kv_sequence_create(c, &made, e);
       }},
      {"kv_sequence_fork",
       [](kv_context* c, kv_error* e) {
         kv_sequence made = 0;
         return kv_sequence_fork(c, 0, 0, &made, e);
       }},
      {"kv_sequence_truncate", [](kv_context* c, kv_error* e) { return kv_sequence_truncate(c, 0, 0, e); }},
      {"kv_sequence_release", [](kv_context* c, kv_error* e) { return kv_sequence_release(c, 0, e); }},
      {"kv_sequence_length",
       [](kv_context* c, kv_error* e) {
         uint64_t length = 0;
         return kv_sequence_length(c, 0, &length, e);
       }},
      {"kv_sequence_tokens",
       [](kv_context* c, kv_error* e) {
         int32_t token = 0;
         return kv_sequence_tokens(c, 0, 0, 1, &token, e);
       }},
      {"kv_prefill", [](kv_context* c, kv_error* e) { return kv_prefill(c, 0, &kToken, 1, nullptr, nullptr, e); }},
      {"kv_decode_step",
       [](kv_context* c, kv_error* e) {
         const kv_decode_input input = {0, kToken, 0};
         return kv_decode_step(c, &input, 1, nullptr, nullptr, e);
       }},
      {"kv_step",
       [](kv_context* c, kv_error* e) {
         kv_step_input input = sized<kv_step_input>();
         input.tokens = &kToken;
         input.count = 1;
         return kv_step(c, &input, 1, nullptr, nullptr, e);
       }},
      {"kv_cache_read",
       [](kv_context* c, kv_error* e) {
         float row[64];
         return kv_cache_read(c, 0, 0, KV_CACHE_K, 0, 1, row, 64, e);
       }},
      {"kv_context_set_trace", [](kv_context* c, kv_error* e) { return kv_context_set_trace(c, nullptr, nullptr, e); }},
  };
}

void expect_all_busy(kv_context* context) {
  for (const auto& [name, call] : context_calls()) {
    Error e;
    EXPECT_EQ(call(context, &e), KV_BUSY) << name << ": " << e.message;
    EXPECT_NE(std::string(e.message).find("in use"), std::string::npos) << e.message;
  }
}

// Calls on the model and the runtime are for any thread at any time.
void expect_the_rest_works(kv_runtime* runtime, kv_model* model, const char* device) {
  Error e;
  kv_model_info info = sized<kv_model_info>();
  EXPECT_EQ(kv_model_get_info(model, &info, &e), KV_OK);
  kv_memory_plan plan = sized<kv_memory_plan>();
  const kv_context_options o = options_for(device, 1);
  EXPECT_EQ(kv_context_plan(model, &o, &plan, &e), KV_OK) << e.message;
  kv_backend_report* report = nullptr;
  EXPECT_EQ(kv_backend_report_create(runtime, &report, &e), KV_OK) << e.message;
  kv_backend_report_release(report);
}

// How a prefill comes to call back.
enum class Way { progress, row, trace };

class Busy : public ::testing::TestWithParam<std::tuple<std::string, Way>> {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  ContextPtr context_ = make_context(model_.get(), options());
  const std::vector<int32_t> tokens_ = random_tokens(40, 64, 4);
  std::function<void()> callback_;  // the first time only
  Error e;

  const char* device() const { return std::get<0>(GetParam()).c_str(); }
  kv_context_options options() const {
    kv_context_options o = options_for(device(), 2);
    o.max_batch_tokens = 8;
    return o;
  }
  void called() {
    if (callback_) std::exchange(callback_, nullptr)();
  }

  kv_status prefill_with_callback(kv_context* context) {
    kv_step_options o = sized<kv_step_options>();
    switch (std::get<1>(GetParam())) {
      case Way::progress:
        o.progress_user = this;
        o.progress = [](void* self, uint64_t, uint64_t) { static_cast<Busy*>(self)->called(); };
        break;
      case Way::row:
        o.outputs = KV_OUTPUT_ALL;
        o.row_user = this;
        o.row = [](void* self, kv_sequence, uint64_t, const float*, uint32_t) { static_cast<Busy*>(self)->called(); };
        break;
      case Way::trace:
        EXPECT_EQ(
            kv_context_set_trace(
                context, [](void* self, const kv_trace_record*) { static_cast<Busy*>(self)->called(); }, this, &e),
            KV_OK);
    }
    return kv_prefill(context, 0, tokens_.data(), tokens_.size(), &o, nullptr, &e);
  }

  // As if nobody had called in between.
  void expect_unharmed() {
    EXPECT_EQ(kv_context_set_trace(context_.get(), nullptr, nullptr, &e), KV_OK);
    EXPECT_EQ(length_of(context_.get(), 0), tokens_.size());
    const ContextPtr fresh = make_context(model_.get(), options());
    prefill(fresh.get(), 0, tokens_);
    EXPECT_TRUE(same_bits(decode(context_.get(), 0, 5), decode(fresh.get(), 0, 5)));
  }
};

TEST_P(Busy, ASecondThread) {
  Gate gate;
  callback_ = [&] { gate.enter(); };
  std::thread holder([&] { EXPECT_EQ(prefill_with_callback(context_.get()), KV_OK) << e.message; });
  gate.await_entered();
  expect_all_busy(context_.get());
  expect_the_rest_works(runtime_.get(), model_.get(), device());
  EXPECT_EQ(prefill(make_context(model_.get(), options()).get(), 0, {1}).size(), 64U);
  gate.open();
  holder.join();
  expect_unharmed();
}

TEST_P(Busy, TheCallbackItself) {
  callback_ = [&] {
    expect_all_busy(context_.get());
    expect_the_rest_works(runtime_.get(), model_.get(), device());
    EXPECT_EQ(prefill(make_context(model_.get(), options()).get(), 0, {1}).size(), 64U);
  };
  OK(prefill_with_callback(context_.get()));
  expect_unharmed();
}

// A context that is released while it is in use lives until that use ends, whoever releases it.
TEST_P(Busy, ReleasedWhileInUse) {
  for (const bool by_second_thread : {false, true}) {
    std::atomic<int> destroyed{0};
    kv_runtime_options o = sized<kv_runtime_options>();
    o.destroyed_user = &destroyed;
    o.destroyed = [](void* user) { ++*static_cast<std::atomic<int>*>(user); };
    RuntimePtr runtime = make_runtime(&o);
    ModelPtr model = random_model(runtime.get(), small_config(), 7);
    kv_context* context = make_context(model.get(), options()).release();
    runtime.reset();
    model.reset();
    Gate gate;
    callback_ = [&] {
      if (by_second_thread) return gate.enter();
      kv_context_release(context);
    };
    std::thread holder([&] { EXPECT_EQ(prefill_with_callback(context), KV_OK) << e.message; });
    if (by_second_thread) {
      gate.await_entered();
      kv_context_release(context);
      EXPECT_EQ(destroyed, 0);
      gate.open();
    }
    holder.join();
    EXPECT_EQ(destroyed, 1);
  }
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<std::string, Way>>& p) {
  const char* ways[] = {"progress", "row", "trace"};
  return std::get<0>(p.param) + "_" + ways[static_cast<int>(std::get<1>(p.param))];
}
INSTANTIATE_TEST_SUITE_P(Backends, Busy,
                         ::testing::Combine(::testing::ValuesIn(backends()),
                                            ::testing::Values(Way::progress, Way::row, Way::trace)),
                         case_name);

// ---- weights being made ---------------------------------------------------------------------------------------------

class BusyModel : public ::testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  std::function<void()> callback_;

  const char* device() const { return GetParam().c_str(); }
  kv_status prepare(const kv_cancel* cancel, bool calls_back, kv_error* error) {
    kv_model_options o = sized<kv_model_options>();
    o.cancel = cancel;
    if (calls_back) {
      o.progress_user = this;
      o.progress = [](void* self, uint64_t, uint64_t) {
        auto* test = static_cast<BusyModel*>(self);
        if (test->callback_) std::exchange(test->callback_, nullptr)();
      };
    }
    return kv_model_prepare(model_.get(), device(), &o, error);
  }
  kv_status create(const kv_cancel* cancel, kv_error* error) {
    kv_model_options load = sized<kv_model_options>();
    load.cancel = cancel;
    kv_context_options o = options_for(device(), 1);
    o.load = &load;
    kv_context* context = nullptr;
    const kv_status status = kv_context_create(model_.get(), &o, &context, error);
    kv_context_release(context);
    return status;
  }
};

TEST_P(BusyModel, WaitingForWeightsCanBeStopped) {
  Gate gate;
  callback_ = [&] { gate.enter(); };
  std::thread loader([&] {
    Error e;
    EXPECT_EQ(prepare(nullptr, true, &e), KV_OK) << e.message;
  });
  gate.await_entered();
  expect_the_rest_works(runtime_.get(), model_.get(), device());
  const CancelPtr first = make_cancel(), second = make_cancel();
  std::thread impatient([&] {
    Error e;
    FAILS(KV_CANCELLED, "cancelled", create(first.get(), &e));
  });
  std::thread preparer([&] {
    Error e;
    FAILS(KV_CANCELLED, "cancelled", prepare(second.get(), false, &e));
  });
  std::thread patient([&] {
    Error e;
    EXPECT_EQ(create(nullptr, &e), KV_OK) << e.message;
  });
  kv_cancel_set(first.get());
  kv_cancel_set(second.get());
  impatient.join();  // while the loader is still held
  preparer.join();
  gate.open();
  loader.join();
  patient.join();
}

TEST_P(BusyModel, AWaiterTakesOverWhenTheLoaderIsCancelled) {
  Gate gate;
  const CancelPtr cancel = make_cancel();
  callback_ = [&] { gate.enter(); };
  std::thread loader([&] {
    Error e;
    FAILS(KV_CANCELLED, "cancelled", prepare(cancel.get(), true, &e));
  });
  gate.await_entered();
  std::thread waiter([&] {
    Error e;
    EXPECT_EQ(create(nullptr, &e), KV_OK) << e.message;
  });
  kv_cancel_set(cancel.get());
  gate.open();
  loader.join();
  waiter.join();
}

TEST_P(BusyModel, TheCallbackGetsAStatus) {
  callback_ = [&] {
    Error e;
    FAILS(KV_BUSY, "callback", create(nullptr, &e));
    FAILS(KV_BUSY, "callback", prepare(nullptr, false, &e));
    expect_the_rest_works(runtime_.get(), model_.get(), device());
  };
  EXPECT_EQ(prepare(nullptr, true, nullptr), KV_OK);
  EXPECT_EQ(create(nullptr, nullptr), KV_OK);
}

// A callback may throw (C++ hosts do); the turn to load must not stay taken.
TEST_P(BusyModel, AThrowingCallbackGivesTheTurnBack) {
  Error e;
  callback_ = [] { throw std::bad_alloc(); };
  FAILS(KV_OUT_OF_MEMORY, "memory", prepare(nullptr, true, &e));
  OK(create(nullptr, &e));
}

TEST_P(BusyModel, TheHandleMayGoMeanwhile) {
  Error e;
  callback_ = [&] { model_.reset(); };
  OK(prepare(nullptr, true, &e));
}

INSTANTIATE_TEST_SUITE_P(Backends, BusyModel, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
