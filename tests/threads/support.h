// SPDX-License-Identifier: MIT
//
// What the tests of threads and processes share: threads that start together, a latch that holds a call in a callback,
// child processes that cannot hang, hashes of bits, models of any weight type.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "support/random_model.h"
#include "support/toy_model.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define KV_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define KV_TEST_SANITIZED 1
#endif
#endif
#ifndef KV_TEST_SANITIZED
#define KV_TEST_SANITIZED 0
#endif

namespace kvasir::test {

// FNV-1a over bytes.
class Hash {
 public:
  void bytes(const void* data, size_t count) {
    for (size_t i = 0; i < count; i++) value_ = (value_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3U;
  }
  void number(uint64_t value) { bytes(&value, sizeof value); }
  void floats(const float* data, size_t count) { bytes(data, count * sizeof(float)); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325U;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// body(i) on `count` threads that begin at the same time.
inline void run_together(uint32_t count, const std::function<void(uint32_t)>& body) {
  std::atomic<uint32_t> waiting{count};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; i++) {
    threads.emplace_back([&, i] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A callback enters and stays until the test opens.
class Gate {
 public:
  void enter() {
    std::unique_lock lock(mutex_);
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_entered() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool inside_ = false, open_ = false;
};

inline CancelPtr make_cancel() {
  kv_cancel* cancel = nullptr;
  EXPECT_EQ(kv_cancel_create(&cancel, nullptr), KV_OK);
  return CancelPtr(cancel);
}

inline kv_context_options options_for(const char* device, uint32_t threads = 0) {
  kv_context_options o = sized<kv_context_options>();
  o.device = device;
  o.max_tokens = 512;
  o.page_tokens = 16;
  o.threads = threads;
  return o;
}

// A random model of `dim` in any weight type, made as a file in memory.
inline ModelPtr typed_model(kv_runtime* runtime, uint32_t type, uint32_t dim = 32, uint32_t seed = 3) {
  ModelConfig config = testing::small_config();
  config.dim = config.ffn_dim = dim;
  config.head_dim = config.v_head_dim = config.rope.dims = dim / config.heads;
  config.context_length = 512;
  const std::vector<uint8_t> file = testing::random_gguf(config, type, seed);
  Error e;
  kv_model* model = nullptr;
  if (kv_model_load_memory(runtime, file.data(), file.size(), nullptr, &model, &e) != KV_OK) ADD_FAILURE() << e.message;
  return ModelPtr(model);
}

// The exit status of a child process that runs `body`, or -signal when one killed it: SIGALRM when it hung.
inline int in_child(const std::function<int()>& body, unsigned seconds = 60) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

inline size_t count_threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoul(line.substr(8));
  }
  return 0;
}

}  // namespace kvasir::test
