// SPDX-License-Identifier: MIT
//
// A host with an odd floating-point state: rounding up, denormals flushed, exceptions trapped, short x87 precision. Bits
// are the same, the state is left as found by every call, and callbacks see the host's own. (KVB-6.)
#include <fenv.h>

#include "support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace kvasir::test {
namespace {

struct State {
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;
  bool operator==(const State&) const = default;
};

State current() {
  State state;
  state.mxcsr = _mm_getcsr();
  asm volatile("fnstcw %0" : "=m"(state.x87));
  return state;
}

void enter(const State& state) {
  asm volatile("fnclex");
  asm volatile("fldcw %0" : : "m"(state.x87));
  _mm_setcsr(state.mxcsr);
}

struct Mode {
  const char* name;
  State state;
};

constexpr uint32_t kMasked = 0x1f80, kFlags = 0x3f;
constexpr Mode kDefault = {"default", {kMasked, 0x37f}};
constexpr Mode kModes[] = {
    kDefault,
    {"up", {kMasked | 0x4000, 0xb7f}},
    {"down", {kMasked | 0x2000, 0x77f}},
    {"toward_zero", {kMasked | 0x6000, 0xf7f}},
    {"flush_denormals", {kMasked | 0x8040, 0x37f}},
    {"trap_everything", {0, 0x340}},
    {"flags_raised", {kMasked | kFlags, 0x37f}},
    {"x87_single", {kMasked, 0x07f}},
    {"trap_up_flush", {0x8040 | 0x4000, 0x840}},
};

// The mode of the calling thread while it lives. Between calls the test itself computes nothing in it.
class InMode {
 public:
  explicit InMode(const Mode& mode) : mode_(mode), before_(current()) { enter(mode.state); }
  ~InMode() {
    const State left = current();
    enter(before_);
    EXPECT_TRUE(left == mode_.state) << "mode " << mode_.name << ": mxcsr was " << mode_.state.mxcsr << " and is "
                                     << left.mxcsr << ", x87 " << mode_.state.x87 << " and " << left.x87;
  }
  // After a call.
  void check(kv_status status, const kv_error& error, kv_status expected = KV_OK) {
    if (status == expected && current() == mode_.state) return;
    const State left = current();
    enter(before_);
    ADD_FAILURE() << "mode " << mode_.name << ": " << kv_status_name(status) << " " << error.message << ", mxcsr "
                  << left.mxcsr << ", x87 " << left.x87;
    enter(mode_.state);
  }

 private:
  const Mode& mode_;
  const State before_;
};

// What callbacks saw; counted, so that nothing is judged in the odd mode.
struct Seen {
  State expected;
  std::atomic<int> right{0}, wrong{0};

  void note() { (current() == expected ? right : wrong)++; }
  static void progress(void* user, uint64_t, uint64_t) { static_cast<Seen*>(user)->note(); }
  static void row(void* user, kv_sequence, uint64_t, const float*, uint32_t) { static_cast<Seen*>(user)->note(); }
  static void trace(void* user, const kv_trace_record*) { static_cast<Seen*>(user)->note(); }
  static void log(void* user, int32_t, const char*, size_t) { static_cast<Seen*>(user)->note(); }
  static void hook(void* user, float*, uint32_t) { static_cast<Seen*>(user)->note(); }
  static void destroyed(void* user) { static_cast<Seen*>(user)->note(); }
  static void parallel_for(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
    static_cast<Seen*>(user)->note();
    for (uint32_t i = 0; i < count; i++) body(arg, i);
    static_cast<Seen*>(user)->note();
  }
};

std::vector<uint8_t> file_of(uint32_t type, bool scaled_rope) {
  ModelConfig config = testing::small_config();
  config.dim = config.ffn_dim = type == KV_TYPE_Q4_K ? 256 : 64;
  config.head_dim = config.v_head_dim = config.rope.dims = config.dim / config.heads;
  config.context_length = 512;
  if (scaled_rope) {
    config.rope.scaling = RopeScaling::yarn;
    config.rope.factor = 3.0F;
    config.rope.original_context = 128;
  }
  return testing::random_gguf(config, type, 3);
}

// Everything an application does, in one mode; the hash of all that it got.
class Session {
 public:
  Session(const Mode& mode, const char* device, bool executor) : mode_(mode), device_(device), executor_(executor) {
    seen_.expected = mode.state;
  }

  uint64_t run(const std::vector<uint8_t>& file, uint32_t cache_type) {
    kv_runtime_options o = sized<kv_runtime_options>();
    o.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
    o.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
    o.log = Seen::log;
    o.destroyed = Seen::destroyed;
    o.log_user = o.destroyed_user = o.parallel_user = &seen_;
    if (executor_) o.parallel_for = Seen::parallel_for;
    tokens_ = random_tokens(70, 64, 8);
    {
      InMode in(mode_);
      in.check(kv_runtime_create(&o, &runtime_, &e_), e_);
      in.check(kv_model_load_memory(runtime_, file.data(), file.size(), nullptr, &model_, &e_), e_);
      compute(in, cache_type);
      sample(in);
      kv_model_release(model_);
      kv_runtime_release(runtime_);
    }
    EXPECT_EQ(seen_.wrong, 0) << "callbacks in a state that is not the host's";
    EXPECT_GT(seen_.right, 20);
    return hash_.value();
  }

 private:
  void compute(InMode& in, uint32_t cache_type) {
    kv_model_options load = sized<kv_model_options>();
    load.progress = Seen::progress;
    load.progress_user = &seen_;
    kv_context_options o = options_for(device_, 2);
    o.k_type = o.v_type = cache_type;
    o.load = &load;
    kv_context* context = nullptr;
    in.check(kv_context_create(model_, &o, &context, &e_), e_);
    kv_step_options step = sized<kv_step_options>();
    step.progress = Seen::progress;
    step.row = Seen::row;
    step.progress_user = step.row_user = &seen_;
    kv_step_result result = sized<kv_step_result>();
    in.check(kv_prefill(context, 0, tokens_.data(), tokens_.size(), &step, &result, &e_), e_);
    hash_.floats(result.rows, result.width);
    step.outputs = KV_OUTPUT_ALL;
    in.check(kv_prefill(context, 0, tokens_.data(), 3, &step, nullptr, &e_), e_);
    in.check(kv_context_set_trace(context, Seen::trace, &seen_, &e_), e_);
    step.outputs = KV_OUTPUT_LAST;
    const kv_decode_input input = {0, 5, 0};
    in.check(kv_decode_step(context, &input, 1, &step, &result, &e_), e_);
    hash_.floats(result.rows, result.width);
    logits_.assign(result.rows, result.rows + result.width);
    std::vector<float> rows(70 * 128);
    in.check(kv_cache_read(context, 0, 1, KV_CACHE_K, 0, 70, rows.data(), rows.size(), &e_), e_);
    hash_.floats(rows.data(), rows.size());
    fail(in, context);
    kv_context_release(context);
  }

  // Refused and cancelled calls leave the state as they found it too.
  void fail(InMode& in, kv_context* context) {
    const int32_t bad = 9999;
    in.check(kv_prefill(context, 0, &bad, 1, nullptr, nullptr, &e_), e_, KV_INVALID_ARGUMENT);
    kv_cancel* cancel = nullptr;
    in.check(kv_cancel_create(&cancel, &e_), e_);
    kv_cancel_set(cancel);
    kv_step_options step = sized<kv_step_options>();
    step.cancel = cancel;
    in.check(kv_prefill(context, 0, tokens_.data(), 9, &step, nullptr, &e_), e_, KV_CANCELLED);
    kv_cancel_release(cancel);
    kv_model* none = nullptr;
    in.check(kv_model_load_memory(runtime_, "nonsense", 8, nullptr, &none, &e_), e_, KV_CORRUPT);
    in.check(kv_model_load_file(runtime_, "/nowhere", nullptr, &none, &e_), e_, KV_NOT_FOUND);
  }

  void sample(InMode& in) {
    kv_sampler_options o = sized<kv_sampler_options>();
    o.temperature = kTemperature;
    o.use_top_p = 1;
    o.top_p = kTopP;
    o.repetition_penalty = kTopP + kTemperature;  // known to the compiler
    o.log_probabilities = 1;
    o.hook = Seen::hook;
    o.hook_user = &seen_;
    kv_sampler* sampler = nullptr;
    in.check(kv_sampler_create(&o, &sampler, &e_), e_);
    for (int i = 0; i < 50; i++) {
      kv_sample sample = sized<kv_sample>();
      in.check(kv_sampler_sample(sampler, logits_.data(), 64, &sample, &e_), e_);
      hash_.bytes(&sample.token, sizeof sample.token);
      hash_.bytes(&sample.log_probability, sizeof sample.log_probability);
      in.check(kv_sampler_accept(sampler, sample.token, &e_), e_);
    }
    kv_sampler_release(sampler);
  }

  static constexpr float kTemperature = 0.7F, kTopP = 0.9F;

  const Mode& mode_;
  const char* device_;
  const bool executor_;
  Seen seen_;
  kv_runtime* runtime_ = nullptr;
  kv_model* model_ = nullptr;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  Hash hash_;
  Error e_;
};

struct Subject {
  const char* name;
  uint32_t weights, cache;
  bool executor, scaled_rope;
};

class FloatState : public ::testing::TestWithParam<Subject> {};

TEST_P(FloatState, SameBitsInEveryMode) {
  const Subject& subject = GetParam();
  const std::vector<uint8_t> file = file_of(subject.weights, subject.scaled_rope);
  for (const std::string& device : backends()) {
    const uint64_t want = Session(kDefault, device.c_str(), subject.executor).run(file, subject.cache);
    for (const Mode& mode : kModes) {
      EXPECT_EQ(Session(mode, device.c_str(), subject.executor).run(file, subject.cache), want)
          << device << ", " << mode.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Subjects, FloatState,
                         ::testing::Values(Subject{"f32", KV_TYPE_F32, KV_TYPE_F32, false, false},
                                           Subject{"bf16_f16", KV_TYPE_BF16, KV_TYPE_F16, false, true},
                                           Subject{"q8_0", KV_TYPE_Q8_0, KV_TYPE_Q8_0, false, false},
                                           Subject{"q4_k_executor", KV_TYPE_Q4_K, KV_TYPE_F16, true, false},
                                           Subject{"q5_1_converted", KV_TYPE_Q5_1, KV_TYPE_BF16, false, false}),
                         [](const auto& p) { return p.param.name; });

TEST(FloatStateText, TokenizerAndFile) {
  uint64_t want = 0;
  for (const Mode& mode : kModes) {
    Hash hash;
    const RuntimePtr runtime = make_runtime();
    const std::string path = demo_model(), text = "Once upon a time there was a dragon, 12.5 m long.";
    {
      Error e;
      InMode in(mode);
      kv_model* model = nullptr;
      in.check(kv_model_load_file(runtime.get(), path.c_str(), nullptr, &model, &e), e);
      int32_t tokens[128];
      size_t count = 0, length = 0;
      char back[256];
      const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
      in.check(kv_tokenize(tokenizer, text.data(), text.size(), 0, tokens, 128, &count, &e), e);
      in.check(kv_detokenize(tokenizer, tokens, count, 0, back, sizeof back, &length, &e), e);
      hash.bytes(tokens, count * sizeof *tokens);
      hash.bytes(back, length);
      kv_model_release(model);
    }
    if (want == 0) want = hash.value();
    EXPECT_EQ(hash.value(), want) << mode.name;
  }
}

// What a callback changes stays changed, as if the library were not there.
TEST(FloatStateCallback, MayChangeTheHostsState) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 7);
  const ContextPtr context = make_context(model.get(), options_for("cpu", 2));
  const State before = current();
  kv_step_options o = sized<kv_step_options>();
  o.progress = [](void*, uint64_t, uint64_t) { fesetround(FE_UPWARD); };
  const int32_t tokens[] = {1, 2, 3};
  const kv_status status = kv_prefill(context.get(), 0, tokens, 3, &o, nullptr, nullptr);
  const int rounding = fegetround();
  enter(before);
  EXPECT_EQ(status, KV_OK);
  EXPECT_EQ(rounding, FE_UPWARD);
}

// An executor's threads have a state of their own.
TEST(FloatStateExecutor, ThreadsKeepTheirs) {
  static std::atomic<int> changed;
  changed = 0;
  const auto session = [](const Mode* mode) {
    static const Mode* mode_of_threads;
    mode_of_threads = mode;
    kv_runtime_options o = sized<kv_runtime_options>();
    o.parallel_for = [](void*, uint32_t count, kv_parallel_body_fn body, void* arg) {
      std::vector<std::thread> threads;
      for (uint32_t i = 0; i < count; i++) {
        threads.emplace_back([=] {
          enter(mode_of_threads->state);
          body(arg, i);
          if (!(current() == mode_of_threads->state)) changed++;
          enter(kDefault.state);
        });
      }
      for (std::thread& thread : threads) thread.join();
    };
    const RuntimePtr runtime = make_runtime(&o);
    const ModelPtr model = typed_model(runtime.get(), KV_TYPE_Q8_0, 64);
    return prefill(make_context(model.get(), options_for("cpu", 2)).get(), 0, random_tokens(40, 64, 1));
  };
  const std::vector<float> want = session(&kDefault);
  for (const Mode& mode : kModes) EXPECT_TRUE(same_bits(session(&mode), want)) << mode.name;
  EXPECT_EQ(changed, 0);
}

}  // namespace
}  // namespace kvasir::test

#else
TEST(FloatState, OnThisProcessor) { GTEST_SKIP() << "the modes of this test are those of x86"; }
#endif
