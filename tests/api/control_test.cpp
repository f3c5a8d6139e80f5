// SPDX-License-Identifier: MIT
//
// Cancel, progress, trace, callbacks for all rows, rows into the caller's memory. (Case P26.)
#include <cstring>
#include <new>
#include <thread>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

CancelPtr make_cancel() {
  kv_cancel* cancel = nullptr;
  EXPECT_EQ(kv_cancel_create(&cancel, nullptr), KV_OK);
  return CancelPtr(cancel);
}

class Control : public testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  Error e;

  ContextPtr context(uint32_t batch = 0) {
    kv_context_options o = sized<kv_context_options>();
    o.device = GetParam().c_str();
    o.max_tokens = 256;
    o.max_batch_tokens = batch;
    return make_context(model_.get(), o);
  }
};

// Sets the flag when `at` tokens are done.
struct CancelAt {
  kv_cancel* cancel;
  uint64_t at;
  static void progress(void* user, uint64_t done, uint64_t) {
    auto* self = static_cast<CancelAt*>(user);
    if (done >= self->at) kv_cancel_set(self->cancel);
  }
};

TEST_P(Control, CancelledPrefillLeavesNothing) {
  const std::vector<int32_t> tokens = random_tokens(60, 64, 1);
  for (const uint64_t at : {0U, 8U, 24U, 52U}) {
    const ContextPtr c = context(4);
    const CancelPtr cancel = make_cancel();
    CancelAt trigger = {cancel.get(), at};
    if (at == 0) kv_cancel_set(cancel.get());
    kv_step_options o = sized<kv_step_options>();
    o.cancel = cancel.get();
    o.progress = CancelAt::progress;
    o.progress_user = &trigger;
    FAILS(KV_CANCELLED, "cancelled after " + std::to_string(at) + " of 60",
          kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e));
    EXPECT_EQ(length_of(c.get(), 0), 0U);
    // Sticky until its owner resets it.
    FAILS(KV_CANCELLED, "cancelled", kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e));
    kv_cancel_reset(cancel.get());
    trigger.at = UINT64_MAX;
    kv_step_result result = sized<kv_step_result>();
    OK(kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, &result, &e));
    EXPECT_TRUE(same_bits({result.rows, result.rows + result.width}, prefill(context().get(), 0, tokens)));
  }
}

TEST_P(Control, FinishedChunksAreKeptWhenAskedFor) {
  const std::vector<int32_t> tokens = random_tokens(60, 64, 1);
  const ContextPtr c = context(8);
  const CancelPtr cancel = make_cancel();
  CancelAt trigger = {cancel.get(), 24};
  kv_step_options o = sized<kv_step_options>();
  o.cancel = cancel.get();
  o.progress = CancelAt::progress;
  o.progress_user = &trigger;
  o.keep_chunks = 1;
  kv_step_result result = sized<kv_step_result>();
  FAILS(KV_CANCELLED, "24 of 60", kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, &result, &e));
  EXPECT_EQ(result.status, KV_CANCELLED);
  EXPECT_EQ(result.length, 24U);
  EXPECT_EQ(result.computed, 24U);
  EXPECT_EQ(length_of(c.get(), 0), 24U);
  EXPECT_TRUE(same_bits(prefill(c.get(), 0, {tokens.begin() + 24, tokens.end()}), prefill(context().get(), 0, tokens)));
}

TEST_P(Control, CancelFromAnotherThread) {
  const ContextPtr c = context();
  const std::vector<int32_t> tokens = random_tokens(200, 64, 2);
  for (int delay = 0; delay < 6; delay++) {
    const CancelPtr cancel = make_cancel();
    kv_step_options o = sized<kv_step_options>();
    o.cancel = cancel.get();
    std::thread presser([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * delay));
      kv_cancel_set(cancel.get());
      kv_cancel_set(cancel.get());
    });
    const kv_status status = kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e);
    presser.join();
    ASSERT_TRUE(status == KV_OK || status == KV_CANCELLED) << e.message;
    EXPECT_EQ(length_of(c.get(), 0), status == KV_OK ? 200U : 0U);
    OK(kv_sequence_truncate(c.get(), 0, 0, &e));
    EXPECT_TRUE(same_bits(prefill(c.get(), 0, tokens), prefill(context().get(), 0, tokens)));
    OK(kv_sequence_truncate(c.get(), 0, 0, &e));
  }
}

TEST_P(Control, AllRowsComeInOrderAndEqualSteps) {
  const std::vector<int32_t> tokens = random_tokens(40, 64, 3);
  struct Rows {
    std::vector<std::vector<float>> rows;
  } all;
  kv_step_options o = sized<kv_step_options>();
  o.outputs = KV_OUTPUT_ALL;
  o.row_user = &all;
  o.row = [](void* user, kv_sequence sequence, uint64_t position, const float* row, uint32_t width) {
    auto* a = static_cast<Rows*>(user);
    EXPECT_EQ(sequence, KV_DEFAULT_SEQUENCE);
    EXPECT_EQ(position, a->rows.size());
    a->rows.emplace_back(row, row + width);
  };
  const ContextPtr c = context(7);
  OK(kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e));
  ASSERT_EQ(all.rows.size(), tokens.size());
  const ContextPtr steps = context();
  for (size_t i = 0; i < tokens.size(); i++)
    EXPECT_TRUE(same_bits(decode(steps.get(), 0, tokens[i]), all.rows[i])) << i;
}

TEST_P(Control, RowsIntoTheCallersMemory) {
  const ContextPtr c = context();
  kv_sequence other = 0;
  OK(kv_sequence_create(c.get(), &other, &e));
  std::vector<float> rows(2 * 64, -1.0F);
  kv_step_options o = sized<kv_step_options>();
  o.into = rows.data();
  o.into_floats = rows.size();
  const kv_decode_input inputs[2] = {{0, 4, 0}, {other, 9, 0}};
  kv_step_result results[2] = {sized<kv_step_result>(), sized<kv_step_result>()};
  OK(kv_decode_step(c.get(), inputs, 2, &o, results, &e));
  EXPECT_EQ(results[1].rows, rows.data() + 64);
  EXPECT_TRUE(same_bits({rows.begin(), rows.begin() + 64}, prefill(context().get(), 0, {4})));
  EXPECT_TRUE(same_bits({rows.begin() + 64, rows.end()}, prefill(context().get(), 0, {9})));
}

TEST_P(Control, TracedStepsHaveTheSameBits) {
  const std::vector<int32_t> tokens = random_tokens(20, 64, 4);
  const ContextPtr traced = context();
  std::vector<std::string> names;
  OK(kv_context_set_trace(
      traced.get(),
      [](void* user, const kv_trace_record* r) {
        if (r->layer == 0) static_cast<std::vector<std::string>*>(user)->push_back(r->name);
      },
      &names, &e));
  EXPECT_TRUE(same_bits(prefill(traced.get(), 0, tokens), prefill(context().get(), 0, tokens)));
  for (const char* name : {"attn_norm", "q", "k", "v", "q_rope", "k_rope", "scores", "weights", "attn", "attn_out",
                           "attn_residual", "ffn_norm", "gate", "up", "glu", "down", "ffn_residual"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  names.clear();
  OK(kv_context_set_trace(traced.get(), nullptr, nullptr, &e));
  decode(traced.get(), 0, 1);
  EXPECT_TRUE(names.empty());
}

TEST_P(Control, ProgressEndsAtTheTotal) {
  const ContextPtr c = context(8);
  std::vector<uint64_t> done;
  kv_step_options o = sized<kv_step_options>();
  o.progress_user = &done;
  o.progress = [](void* user, uint64_t d, uint64_t total) {
    EXPECT_EQ(total, 20U);
    static_cast<std::vector<uint64_t>*>(user)->push_back(d);
  };
  const std::vector<int32_t> tokens = random_tokens(20, 64, 5);
  OK(kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e));
  EXPECT_EQ(done, (std::vector<uint64_t>{8, 16, 20}));
}

// Whatever is thrown through a step, no page stays taken and the next call works.
TEST_P(Control, ACallbackThatThrowsLeavesNothing) {
  const ContextPtr c = context(4);
  const std::vector<int32_t> tokens = random_tokens(30, 64, 6);
  kv_step_options o = sized<kv_step_options>();
  o.progress = [](void*, uint64_t done, uint64_t) {
    if (done >= 12) throw std::bad_alloc();
  };
  FAILS(KV_OUT_OF_MEMORY, "no memory", kv_prefill(c.get(), 0, tokens.data(), tokens.size(), &o, nullptr, &e));
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_EQ(info.pages_used, 0U);
  EXPECT_EQ(info.free_tokens, 256U);
  EXPECT_TRUE(same_bits(prefill(c.get(), 0, tokens), prefill(context().get(), 0, tokens)));
}

INSTANTIATE_TEST_SUITE_P(Backends, Control, testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
