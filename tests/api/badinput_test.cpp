// SPDX-License-Identifier: MIT
//
// What a program can get wrong when it calls the API: NULL, wrong sizes, unknown values, absurd numbers. Each call answers
// with a status and a sentence, and the objects stay usable. (Cases P09, P25, P29.)
#include <cstring>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

class BadInput : public testing::Test {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = random_model(runtime_.get(), small_config(), 7);
  Error e;

  kv_context_options options() {
    kv_context_options o = sized<kv_context_options>();
    o.device = "cpu";
    o.max_tokens = 64;
    return o;
  }
  ContextPtr context() { return make_context(model_.get(), options()); }

  kv_status create(const kv_context_options& o) {
    kv_context* c = nullptr;
    const kv_status status = kv_context_create(model_.get(), &o, &c, &e);
    kv_context_release(c);
    return status;
  }

  // Whatever happened before, a fresh prefill gives the logits it always gave.
  void expect_alive(kv_context* c, kv_sequence sequence) {
    OK(kv_sequence_truncate(c, sequence, 0, &e));
    const std::vector<float> got = prefill(c, sequence, {1, 2, 3});
    const std::vector<float> want = prefill(context().get(), KV_DEFAULT_SEQUENCE, {1, 2, 3});
    ASSERT_EQ(got.size(), 64U);
    EXPECT_EQ(0, std::memcmp(got.data(), want.data(), want.size() * sizeof(float)));
  }
};

TEST_F(BadInput, NullIsRefusedEverywhere) {
  kv_context* c = nullptr;
  kv_model* m = nullptr;
  kv_runtime* r = nullptr;
  FAILS(KV_INVALID_ARGUMENT, "out is NULL", kv_runtime_create(nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "runtime is NULL", kv_model_load_file(nullptr, "x", nullptr, &m, &e));
  FAILS(KV_INVALID_ARGUMENT, "path is NULL", kv_model_load_file(runtime_.get(), nullptr, nullptr, &m, &e));
  FAILS(KV_INVALID_ARGUMENT, "data is NULL", kv_model_load_memory(runtime_.get(), nullptr, 9, nullptr, &m, &e));
  FAILS(KV_INVALID_ARGUMENT, "model is NULL", kv_context_create(nullptr, nullptr, &c, &e));
  FAILS(KV_INVALID_ARGUMENT, "out is NULL", kv_context_create(model_.get(), nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "context is NULL", kv_prefill(nullptr, 0, nullptr, 1, nullptr, nullptr, &e));
  const ContextPtr ctx = context();
  FAILS(KV_INVALID_ARGUMENT, "tokens is NULL", kv_prefill(ctx.get(), 0, nullptr, 1, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "inputs is NULL", kv_decode_step(ctx.get(), nullptr, 1, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "inputs is NULL", kv_step(ctx.get(), nullptr, 1, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "at least one input", kv_step(ctx.get(), nullptr, 0, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "NULL", kv_sequence_fork(ctx.get(), 0, 0, nullptr, &e));
  EXPECT_EQ(kv_runtime_create(nullptr, &r, nullptr), KV_OK);  // an error record is not required
  EXPECT_EQ(kv_runtime_create(nullptr, nullptr, nullptr), KV_INVALID_ARGUMENT);
  kv_runtime_release(r);
  kv_runtime_release(nullptr);
  kv_model_release(nullptr);
  kv_context_release(nullptr);
  kv_sampler_release(nullptr);
  kv_cancel_release(nullptr);
  kv_cancel_set(nullptr);
  EXPECT_EQ(kv_cancel_is_set(nullptr), 0);
  EXPECT_EQ(kv_model_tokenizer(nullptr), nullptr);
  EXPECT_EQ(kv_backend_report_count(nullptr), 0U);
}

TEST_F(BadInput, StructsOfAnySize) {
  kv_context_options o = options();
  o.struct_size = 0;
  FAILS(KV_INVALID_ARGUMENT, "struct_size is 0", create(o));
  o.struct_size = sizeof o - 8;
  FAILS(KV_INVALID_ARGUMENT, "struct_size", create(o));
  o.struct_size = UINT32_MAX;
  FAILS(KV_INVALID_ARGUMENT, "struct_size is 4294967295, not a multiple of 8", create(o));
  o.struct_size = UINT32_MAX - 7;
  FAILS(KV_INVALID_ARGUMENT, "more than any version", create(o));

  // A caller from the future: a longer struct with an empty tail is fine, a used one is refused.
  struct {
    kv_context_options options;
    uint64_t future;
  } longer = {options(), 0};
  longer.options.struct_size = sizeof longer;
  EXPECT_EQ(create(longer.options), KV_OK) << e.message;
  longer.future = 1;
  FAILS(KV_UNSUPPORTED, "field at byte", create(longer.options));

  // Out structs likewise: the tail we do not know comes back as zero.
  struct {
    kv_model_info info;
    uint64_t future;
  } info = {{}, 77};
  info.info.struct_size = sizeof info;
  OK(kv_model_get_info(model_.get(), &info.info, &e));
  EXPECT_EQ(info.future, 0U);
  EXPECT_EQ(info.info.struct_size, sizeof info);
  EXPECT_EQ(info.info.layers, 2U);
  info.info.struct_size = 8;
  FAILS(KV_INVALID_ARGUMENT, "struct_size is 8", kv_model_get_info(model_.get(), &info.info, &e));

  const ContextPtr c = context();
  const int32_t token = 1;
  kv_step_result result = {};
  FAILS(KV_INVALID_ARGUMENT, "kv_step_result: struct_size is 0",
        kv_prefill(c.get(), 0, &token, 1, nullptr, &result, &e));
  EXPECT_EQ(length_of(c.get(), 0), 0U);
}

TEST_F(BadInput, AbsurdContextOptions) {
  kv_context_options o = options();
  o.k_type = 99;
  FAILS(KV_INVALID_ARGUMENT, "keys type 99", create(o));
  o = options();
  o.v_type = KV_TYPE_Q6_K;
  FAILS(KV_UNSUPPORTED, "cannot keep values in q6_k", create(o));
  o = options();
  o.compute_mode = 3;
  FAILS(KV_INVALID_ARGUMENT, "compute mode 3", create(o));
  o = options();
  o.page_tokens = 1u << 30;
  FAILS(KV_UNSUPPORTED, "1073741824", create(o));
  o = options();
  o.flags = 0x80;
  FAILS(KV_UNSUPPORTED, "0x80", create(o));
  o = options();
  o.max_batch_tokens = UINT32_MAX;
  FAILS(KV_INVALID_ARGUMENT, "4294967295", create(o));
  o = options();
  o.max_sequences = UINT32_MAX;
  FAILS(KV_INVALID_ARGUMENT, "4294967295", create(o));
  o = options();
  o.device = "toaster";
  FAILS(KV_NOT_FOUND, "toaster", create(o));
  o.device = "cpu:7";
  EXPECT_NE(create(o), KV_OK);
  o = options();
  o.variant = "quantum";
  EXPECT_NE(create(o), KV_OK);
  EXPECT_NE(std::string(e.message).find("quantum"), std::string::npos) << e.message;
}

TEST_F(BadInput, MemoryThatIsNotThereIsAnAnswer) {
  for (const uint64_t tokens : {uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX}) {
    kv_context_options o = options();
    o.max_tokens = tokens;
    FAILS(KV_OUT_OF_MEMORY, std::to_string(tokens) + " tokens", create(o));
  }
  kv_context_options o = options();
  o.max_tokens = 1 << 20;
  o.memory_budget = 64 << 20;
  FAILS(KV_OUT_OF_MEMORY, "the memory budget of 67108864 bytes", create(o));
  o.max_tokens = 0;  // as many as fit
  kv_memory_plan plan = sized<kv_memory_plan>();
  OK(kv_context_plan(model_.get(), &o, &plan, &e));
  EXPECT_GT(plan.max_tokens, 0U);
  EXPECT_LE(plan.cache_bytes + plan.scratch_bytes, uint64_t{64} << 20);
  EXPECT_EQ(create(o), KV_OK) << e.message;
  o.memory_budget = 1;
  FAILS(KV_OUT_OF_MEMORY, "memory budget", create(o));
}

TEST_F(BadInput, ABudgetIsNeverExceeded) {
  kv_context_options o = options();
  o.page_tokens = 16;
  o.max_tokens = 0;
  kv_memory_plan plan = sized<kv_memory_plan>();
  OK(kv_context_plan(model_.get(), &o, &plan, &e));
  o.memory_budget = plan.scratch_bytes + 5 * 16 * plan.bytes_per_token + 1024;
  const ContextPtr c = make_context(model_.get(), o);
  ASSERT_TRUE(c);
  kv_status status = KV_OK;
  for (int i = 0; i < 40 && status == KV_OK; i++) {  // one token in each sequence: a page each
    kv_sequence s = 0;
    OK(kv_sequence_create(c.get(), &s, &e));
    const int32_t token = 3;
    status = kv_prefill(c.get(), s, &token, 1, nullptr, nullptr, &e);
  }
  EXPECT_EQ(status, KV_CONTEXT_FULL) << e.message;
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(c.get(), &info, &e));
  EXPECT_LE(info.cache_bytes + plan.scratch_bytes, o.memory_budget);
}

TEST_F(BadInput, TokensAndSequencesThatDoNotExist) {
  const ContextPtr c = context();
  for (const int32_t token : {64, -2, INT32_MIN, INT32_MAX}) {
    FAILS(KV_INVALID_ARGUMENT, std::to_string(token), kv_prefill(c.get(), 0, &token, 1, nullptr, nullptr, &e));
  }
  const int32_t row = KV_TOKEN_ROW, fine = 1;
  FAILS(KV_INVALID_ARGUMENT, "neither", kv_prefill(c.get(), 0, &row, 1, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "no tokens", kv_prefill(c.get(), 0, &fine, 0, nullptr, nullptr, &e));
  FAILS(KV_CONTEXT_FULL, "tokens do not fit", kv_prefill(c.get(), 0, &fine, SIZE_MAX, nullptr, nullptr, &e));
  FAILS(KV_CONTEXT_FULL, "tokens do not fit", kv_prefill(c.get(), 0, &fine, size_t{1} << 40, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "sequence 5 does not exist", kv_prefill(c.get(), 5, &fine, 1, nullptr, nullptr, &e));
  FAILS(KV_INVALID_ARGUMENT, "sequence 5", kv_sequence_release(c.get(), 5, &e));
  FAILS(KV_INVALID_ARGUMENT, "holds 0", kv_sequence_truncate(c.get(), 0, 1, &e));
  kv_sequence fork = 0;
  FAILS(KV_INVALID_ARGUMENT, "holds 0", kv_sequence_fork(c.get(), 0, 1, &fork, &e));
  const kv_decode_input twice[2] = {{0, 1, 0}, {0, 2, 0}};
  FAILS(KV_INVALID_ARGUMENT, "appears twice", kv_decode_step(c.get(), twice, 2, nullptr, nullptr, &e));
  EXPECT_EQ(length_of(c.get(), 0), 1U);  // the first of the two was fine
  std::vector<kv_decode_input> many(17, {0, 1, 0});
  FAILS(KV_INVALID_ARGUMENT, "17 inputs", kv_decode_step(c.get(), many.data(), many.size(), nullptr, nullptr, &e));
  expect_alive(c.get(), 0);
}

TEST_F(BadInput, StepOptions) {
  const ContextPtr c = context();
  const int32_t token = 1;
  kv_step_options o = sized<kv_step_options>();
  o.outputs = 9;
  FAILS(KV_INVALID_ARGUMENT, "outputs 9", kv_prefill(c.get(), 0, &token, 1, &o, nullptr, &e));
  o.outputs = KV_OUTPUT_ALL;
  FAILS(KV_INVALID_ARGUMENT, "row callback", kv_prefill(c.get(), 0, &token, 1, &o, nullptr, &e));
  o = sized<kv_step_options>();
  float small[63];
  o.into = small;
  o.into_floats = 63;
  FAILS(KV_BUFFER_TOO_SMALL, "63 floats", kv_prefill(c.get(), 0, &token, 1, &o, nullptr, &e));
  EXPECT_EQ(length_of(c.get(), 0), 0U);
  // A call that is refused as a whole leaves the results alone.
  prefill(c.get(), 0, {1, 2});
  const kv_decode_input inputs[2] = {{0, 1, 0}, {99, 1, 0}};
  kv_step_result results[2] = {sized<kv_step_result>(), sized<kv_step_result>()};
  results[0].status = results[1].status = 77;
  FAILS(KV_BUFFER_TOO_SMALL, "2 rows", kv_decode_step(c.get(), inputs, 2, &o, results, &e));
  EXPECT_EQ(results[0].status, 77);
  EXPECT_EQ(results[1].status, 77);
  EXPECT_EQ(length_of(c.get(), 0), 2U);
  expect_alive(c.get(), 0);
}

TEST_F(BadInput, CallbacksMayNotCallBack) {
  const ContextPtr c = context();
  struct Seen {
    kv_context* context;
    kv_status status = KV_OK;
  } seen = {c.get()};
  kv_step_options o = sized<kv_step_options>();
  o.progress = [](void* user, uint64_t, uint64_t) {
    auto* s = static_cast<Seen*>(user);
    uint64_t length = 0;
    s->status = kv_sequence_length(s->context, 0, &length, nullptr);
  };
  o.progress_user = &seen;
  const int32_t token = 1;
  OK(kv_prefill(c.get(), 0, &token, 1, &o, nullptr, &e));
  EXPECT_EQ(seen.status, KV_BUSY);
}

TEST_F(BadInput, Builders) {
  kv_model_config config = small_config();
  kv_model_builder* b = nullptr;
  const auto refuse = [&](const char* text) {
    FAILS(KV_INVALID_ARGUMENT, text, kv_model_builder_create(runtime_.get(), &config, &b, &e));
  };
  config.layers = 0;
  refuse("layers");
  config = small_config();
  config.heads = 0;
  refuse("0 heads");
  config = small_config();
  config.heads = 3;
  refuse("3");
  config = small_config();
  config.rope_theta = NAN;
  refuse("rope base is not a number");
  config = small_config();
  config.layers = UINT32_MAX;
  config.window = 4;
  refuse("4294967295");
  config = small_config();
  config.norm = 7;
  refuse("norm 7");

  config = small_config();
  const BuilderPtr builder = make_builder(runtime_.get(), config);
  kv_model* m = nullptr;
  FAILS(KV_NOT_FOUND, "token_embd.weight", kv_model_builder_finish(builder.get(), &m, &e));
  const std::vector<float> data(64 * 32, 0.5F);
  FAILS(KV_INVALID_ARGUMENT, "token_embd.weight",
        kv_model_builder_add(builder.get(), "token_embd.weight", KV_TYPE_F32, 64, 32, data.data(), 12, &e));
  OK(kv_model_builder_add(builder.get(), "token_embd.weight", KV_TYPE_F32, 64, 32, data.data(), data.size() * 4, &e));
  FAILS(
      KV_INVALID_ARGUMENT, "token_embd.weight",
      kv_model_builder_add(builder.get(), "token_embd.weight", KV_TYPE_F32, 64, 32, data.data(), data.size() * 4, &e));
  FAILS(KV_NOT_FOUND, "is missing", kv_model_builder_finish(builder.get(), &m, &e));
  EXPECT_EQ(m, nullptr);
}

TEST_F(BadInput, LogitsThatAreNotNumbers) {
  const ModelPtr broken = random_model(runtime_.get(), small_config(), 7, 3e38F);
  kv_context_options o = options();
  o.device = "cpu";
  const ContextPtr c = make_context(broken.get(), o);
  const int32_t token = 1;
  FAILS(KV_BAD_LOGITS, "position 0", kv_prefill(c.get(), 0, &token, 1, nullptr, nullptr, &e));
  EXPECT_EQ(length_of(c.get(), 0), 0U);
  OK(kv_context_set_trace(
      c.get(), [](void*, const kv_trace_record*) {}, nullptr, &e));
  FAILS(KV_BAD_LOGITS, "first appeared in LINEAR logits", kv_prefill(c.get(), 0, &token, 1, nullptr, nullptr, &e));
}

}  // namespace
}  // namespace kvasir::test
