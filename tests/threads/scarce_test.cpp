// SPDX-License-Identifier: MIT
//
// Hosts that leave little: small stacks, no standard streams, no further thread, no further file, a locale with a comma.
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <clocale>
#include <filesystem>

#include "support.h"

namespace kvasir::test {
namespace {

// A thread on a stack of our own, painted, so that what was used of it can be seen.
class PaintedStack {
 public:
  explicit PaintedStack(size_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
    if (memory_ != nullptr) std::memset(memory_, kPaint, bytes);
  }
  ~PaintedStack() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  PaintedStack(const PaintedStack&) = delete;
  PaintedStack& operator=(const PaintedStack&) = delete;

  // False when the thread could not be started.
  bool run(const std::function<void()>& body) {
    body_ = &body;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    const bool started = memory_ != nullptr && pthread_attr_setstack(&attributes, memory_, bytes_) == 0 &&
                         pthread_create(&thread, &attributes, enter, this) == 0;
    pthread_attr_destroy(&attributes);
    return started && pthread_join(thread, nullptr) == 0;
  }

  // Deepest use by bodies, from the frame that called them down.
  size_t used() const {
    size_t untouched = 0;
    while (untouched < bytes_ && memory_[untouched] == kPaint) untouched++;
    return static_cast<size_t>(top_ - (memory_ + untouched));
  }

 private:
  static constexpr uint8_t kPaint = 0xa5;

  static void* enter(void* self) {
    auto* stack = static_cast<PaintedStack*>(self);
    stack->top_ = static_cast<uint8_t*>(__builtin_frame_address(0));
    (*stack->body_)();
    return nullptr;
  }

  const size_t bytes_;
  uint8_t* memory_ = nullptr;
  const uint8_t* top_ = nullptr;
  const std::function<void()>* body_ = nullptr;
};

constexpr uint32_t kAllTypes[] = {KV_TYPE_F32,  KV_TYPE_F16,  KV_TYPE_BF16, KV_TYPE_Q8_0,
                                  KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K};
constexpr uint32_t kCacheTypes[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0};
// What an executor's threads must have for the bodies, beyond what the system itself takes at a thread's start.
constexpr size_t kExecutorStack = 128 * 1024;

struct StackMeter {
  PaintedStack stack{512 * 1024};
  bool failed = false;
  static void parallel_for(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
    auto* meter = static_cast<StackMeter*>(user);
    meter->failed |= !meter->stack.run([&] {
      for (uint32_t i = 0; i < count; i++) body(arg, i);
    });
  }
};

// Runs a prompt and a step; false when the machine has no such variant.
bool run_variant(kv_model* model, const char* variant, uint32_t cache, uint32_t compute) {
  kv_context_options o = options_for("cpu", 2);
  o.variant = variant;
  o.k_type = o.v_type = cache;
  o.compute_mode = compute;
  kv_context* handle = nullptr;
  Error e;
  const kv_status status = kv_context_create(model, &o, &handle, &e);
  if (status == KV_UNSUPPORTED) return false;
  EXPECT_EQ(status, KV_OK) << e.message;
  const ContextPtr context(handle);
  prefill(context.get(), 0, random_tokens(70, 64, 1));
  decode(context.get(), 0, 1);
  return true;
}

// Every kind of weight in both modes, every kind of cache.
bool run_all_kinds(kv_runtime* runtime, const char* variant) {
  for (const uint32_t type : kAllTypes) {
    const ModelPtr model = typed_model(runtime, type, 256);
    if (!run_variant(model.get(), variant, KV_TYPE_F16, KV_COMPUTE_FAST)) return false;
    run_variant(model.get(), variant, KV_TYPE_F32, KV_COMPUTE_EXACT);
    if (type != KV_TYPE_F32) continue;
    for (const uint32_t cache : kCacheTypes) run_variant(model.get(), variant, cache, KV_COMPUTE_FAST);
  }
  return true;
}

TEST(SmallStack, WhatBodiesOfAnExecutorUse) {
  if (KV_TEST_SANITIZED != 0) GTEST_SKIP() << "sanitizers make stacks larger";
  for (const char* variant : {"scalar", "avx2", "avx512"}) {
    StackMeter meter;
    kv_runtime_options o = sized<kv_runtime_options>();
    o.parallel_for = StackMeter::parallel_for;
    o.parallel_user = &meter;
    const RuntimePtr runtime = make_runtime(&o);
    if (!run_all_kinds(runtime.get(), variant)) {
      std::printf("  %s: not on this machine\n", variant);
      continue;
    }
    ASSERT_FALSE(meter.failed);
    std::printf("  %s: %zu bytes\n", variant, meter.stack.used());
    EXPECT_GT(meter.stack.used(), 0U);
    EXPECT_LE(meter.stack.used(), kExecutorStack);
  }
}

// Everything a simple program does.
void whole_program() {
  const RuntimePtr runtime = make_runtime();
  kv_backend_report* report = nullptr;
  Error e;
  OK(kv_backend_report_create(runtime.get(), &report, &e));
  const ReportPtr owned(report);
  const ModelPtr model = load_model(runtime.get(), demo_model());
  for (const std::string& device : backends()) {
    const ContextPtr context = make_context(model.get(), options_for(device.c_str(), 2));
    int32_t tokens[64];
    size_t count = 0;
    OK(kv_tokenize(kv_model_tokenizer(model.get()), "Once upon a time", 16, 0, tokens, 64, &count, &e));
    EXPECT_FALSE(prefill(context.get(), 0, {tokens, tokens + count}).empty());
    const std::vector<float> logits = decode(context.get(), 0, tokens[0]);
    kv_sampler_options o = sized<kv_sampler_options>();
    o.temperature = 1.0F;
    kv_sampler* sampler = nullptr;
    OK(kv_sampler_create(&o, &sampler, &e));
    const SamplerPtr sampling(sampler);
    kv_sample sample = sized<kv_sample>();
    OK(kv_sampler_sample(sampler, logits.data(), static_cast<uint32_t>(logits.size()), &sample, &e));
    size_t length = 0;
    char text[64];
    OK(kv_token_text(kv_model_tokenizer(model.get()), sample.token, 0, text, sizeof text, &length, &e));
  }
}

TEST(SmallStack, ACallerWith256Kilobytes) {
  if (KV_TEST_SANITIZED != 0) GTEST_SKIP() << "sanitizers make stacks larger";
  PaintedStack stack(256 * 1024);
  ASSERT_TRUE(stack.run(whole_program));
  std::printf("  a whole program: %zu bytes\n", stack.used());
}

TEST(Scarce, NoStandardStreams) {
  const int result = in_child([] {
    for (int descriptor = 0; descriptor < 3; descriptor++) close(descriptor);
    whole_program();
    // Nothing of ours stays behind on the numbers of the streams.
    for (int descriptor = 0; descriptor < 3; descriptor++) {
      if (fcntl(descriptor, F_GETFD) != -1) return 10;
    }
    return ::testing::Test::HasFailure() ? 11 : 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Scarce, NoFurtherFile) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), demo_model());
  const std::vector<float> want = prefill(make_context(model.get(), options_for("cpu", 2)).get(), 0, {1, 2, 3});
  const int result = in_child([&] {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 10;
    Error e;
    kv_model* another = nullptr;
    if (kv_model_load_file(runtime.get(), demo_model().c_str(), nullptr, &another, &e) != KV_IO) return 11;
    if (std::string(e.message).find("Too many open files") == std::string::npos) return 12;
    kv_runtime_options o = sized<kv_runtime_options>();
    o.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
    kv_runtime* fresh = nullptr;
    if (kv_runtime_create(&o, &fresh, &e) != KV_OK) return 13;
    if (kv_model_load_file(fresh, demo_model().c_str(), nullptr, &another, &e) != KV_IO) return 14;
    kv_runtime_release(fresh);
    // What is open already goes on.
    const kv_context_options c = options_for("cpu", 2);
    kv_context* context = nullptr;
    if (kv_context_create(model.get(), &c, &context, &e) != KV_OK) return 15;
    const bool same = same_bits(prefill(context, 0, {1, 2, 3}), want);
    kv_context_release(context);
    return same ? 0 : 16;
  });
  EXPECT_EQ(result, 0);
}

TEST(Scarce, NoFurtherThread) {
  if (KV_TEST_SANITIZED != 0) GTEST_SKIP() << "sanitizers have threads of their own";
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), demo_model());
  const std::vector<float> want = prefill(make_context(model.get(), options_for("cpu", 1)).get(), 0, {1, 2, 3});
  const int result = in_child([&] {
    // The limit does not bind the superuser: become somebody who has no other process.
    const uid_t nobody = 61234;
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0)) return 20;
    const rlimit few = {1, 1};
    if (setrlimit(RLIMIT_NPROC, &few) != 0) return 20;
    pthread_t thread;
    if (pthread_create(
            &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == 0) {
      pthread_join(thread, nullptr);
      return 20;
    }
    const size_t before = count_threads();
    const kv_context_options o = options_for("cpu", 2);
    kv_context* context = nullptr;
    if (kv_context_create(model.get(), &o, &context, nullptr) != KV_OK) return 11;
    if (count_threads() != before) return 12;
    const bool same = same_bits(prefill(context, 0, {1, 2, 3}), want);
    kv_context_release(context);
    return same ? 0 : 13;
  });
  if (result == 20) GTEST_SKIP() << "RLIMIT_NPROC does not bind here";
  EXPECT_EQ(result, 0);
}

// Makes the locale in a folder of its own where the system has its sources.
std::string comma_locale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "kvasir_comma"}) {
    if (setlocale(LC_ALL, name) != nullptr && localeconv()->decimal_point[0] == ',') return name;
  }
  return "";
}

TEST(Locale, ADecimalComma) {
  std::string folder = (std::filesystem::temp_directory_path() / "kvasir_locale_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string make = "localedef -i de_DE -f UTF-8 " + folder + "/kvasir_comma >/dev/null 2>&1";
  const bool made = std::system(make.c_str()) == 0;
  const int result = in_child([&] {
    if (made) setenv("LOCPATH", folder.c_str(), 1);
    if (comma_locale().empty()) return 20;
    const std::string before = setlocale(LC_ALL, nullptr);
    whole_program();
    if (setlocale(LC_ALL, nullptr) != before) return 10;
    return ::testing::Test::HasFailure() ? 11 : 0;
  });
  std::filesystem::remove_all(folder);
  if (result == 20) GTEST_SKIP() << "this machine has no locale with a decimal comma and cannot make one";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace kvasir::test
