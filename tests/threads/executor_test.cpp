// SPDX-License-Identifier: MIT
//
// The application's executor instead of Kvasir's threads: of whatever kind it is, the bits are the same and no thread of
// Kvasir's own is started.
#include "support.h"

namespace kvasir::test {
namespace {

using Body = kv_parallel_body_fn;

void forwards(void*, uint32_t count, Body body, void* arg) {
  for (uint32_t i = 0; i < count; i++) body(arg, i);
}
void backwards(void*, uint32_t count, Body body, void* arg) {
  for (uint32_t i = count; i > 0; i--) body(arg, i - 1);
}
void on_one_other_thread(void*, uint32_t count, Body body, void* arg) {
  std::thread([=] { forwards(nullptr, count, body, arg); }).join();
}
void on_as_many_threads(void*, uint32_t count, Body body, void* arg) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; i++) threads.emplace_back([=] { body(arg, i); });
  for (std::thread& thread : threads) thread.join();
}
// Halves a range until one body is left, one half on another thread.
void split(uint32_t first, uint32_t end, Body body, void* arg) {
  if (end - first == 1) return body(arg, first);
  const uint32_t middle = first + (end - first) / 2;
  std::thread other([=] { split(first, middle, body, arg); });
  split(middle, end, body, arg);
  other.join();
}
void nested(void*, uint32_t count, Body body, void* arg) {
  if (count > 0) split(0, count, body, arg);
}
// A pool that is shutting down.
void drops_all_but_the_first(void*, uint32_t count, Body body, void* arg) {
  if (count > 0) body(arg, 0);
}
void drops_all(void*, uint32_t, Body, void*) {}

// A pool of threads that live on between jobs. The caller takes part.
class Pool {
 public:
  explicit Pool(uint32_t size) {
    for (uint32_t i = 0; i < size; i++) threads_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  static void run(void* user, uint32_t count, Body body, void* arg) {
    auto& pool = *static_cast<Pool*>(user);
    std::unique_lock lock(pool.mutex_);
    pool.job_ = {body, arg, count, 0, count};
    pool.changed_.notify_all();
    pool.take_part(lock);
    pool.changed_.wait(lock, [&] { return pool.job_.left == 0; });
  }

 private:
  struct Job {
    Body body = nullptr;
    void* arg = nullptr;
    uint32_t count = 0, next = 0, left = 0;
  };

  void take_part(std::unique_lock<std::mutex>& lock) {
    while (job_.next < job_.count) {
      const uint32_t index = job_.next++;
      const Job job = job_;
      lock.unlock();
      job.body(job.arg, index);
      lock.lock();
      if (--job_.left == 0) changed_.notify_all();
    }
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      take_part(lock);
      changed_.wait(lock, [&] { return stopping_ || job_.next < job_.count; });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Job job_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

uint64_t session(kv_runtime* runtime, uint32_t type, size_t* threads_started = nullptr) {
  const ModelPtr model = typed_model(runtime, type, 64);
  const size_t before = count_threads();
  const ContextPtr context = make_context(model.get(), options_for("cpu", 4));
  Hash hash;
  for (const uint32_t count : {90U, 1U, 1U, 5U, 17U, 1U, 1U}) {
    const std::vector<float> row = prefill(context.get(), 0, random_tokens(count, 64, count));
    hash.floats(row.data(), row.size());
  }
  if (threads_started != nullptr) *threads_started = count_threads() - before;
  return hash.value();
}

struct Kind {
  const char* name;
  kv_parallel_for_fn parallel_for;
  uint32_t pool;  // threads of a pool that is the executor's user
};

class Executor : public ::testing::TestWithParam<Kind> {};

TEST_P(Executor, SameBitsAndNoThreads) {
  const Kind& kind = GetParam();
  const Pool pool(kind.pool);
  kv_runtime_options o = sized<kv_runtime_options>();
  o.parallel_for = kind.parallel_for;
  o.parallel_user = const_cast<Pool*>(&pool);
  const RuntimePtr lent = make_runtime(&o), own = make_runtime();
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_Q8_0, KV_TYPE_F16}) {
    size_t started = 99;
    EXPECT_EQ(session(lent.get(), type, &started), session(own.get(), type)) << kv_type_name(type);
    EXPECT_EQ(started, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Executor,
                         ::testing::Values(Kind{"forwards", forwards, 0}, Kind{"backwards", backwards, 0},
                                           Kind{"on_one_other_thread", on_one_other_thread, 0},
                                           Kind{"on_as_many_threads", on_as_many_threads, 0}, Kind{"nested", nested, 0},
                                           Kind{"pool", Pool::run, 3},
                                           Kind{"drops_all_but_the_first", drops_all_but_the_first, 0},
                                           Kind{"drops_all", drops_all, 0}),
                         [](const auto& p) { return p.param.name; });

// One executor, two contexts that compute at once.
TEST(ExecutorShared, ByTwoThreads) {
  kv_runtime_options o = sized<kv_runtime_options>();
  o.parallel_for = on_as_many_threads;
  const RuntimePtr lent = make_runtime(&o);
  const uint64_t want = session(lent.get(), KV_TYPE_F32);
  uint64_t got[2] = {};
  run_together(2, [&](uint32_t i) { got[i] = session(lent.get(), KV_TYPE_F32); });
  EXPECT_EQ(got[0], want);
  EXPECT_EQ(got[1], want);
}

// What the executor throws (a pool that cannot start a thread) becomes a status, and the context goes on.
TEST(ExecutorThrows, BecomesAStatus) {
  static bool refuses;
  refuses = false;
  kv_runtime_options o = sized<kv_runtime_options>();
  o.parallel_for = [](void*, uint32_t count, Body body, void* arg) {
    if (refuses) throw std::bad_alloc();
    forwards(nullptr, count, body, arg);
  };
  const RuntimePtr lent = make_runtime(&o);
  const ModelPtr model = typed_model(lent.get(), KV_TYPE_F32);
  const ContextPtr context = make_context(model.get(), options_for("cpu", 2));
  kv_context_info info = sized<kv_context_info>();
  Error e;
  refuses = true;
  const int32_t tokens[] = {1, 2, 3};
  const kv_status status = kv_prefill(context.get(), 0, tokens, 3, nullptr, nullptr, &e);
  refuses = false;
  if (status == KV_OK) GTEST_SKIP() << "one processor: the executor is not asked";
  EXPECT_EQ(status, KV_OUT_OF_MEMORY) << e.message;
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_EQ(info.pages_used, 0U);
  EXPECT_TRUE(same_bits(prefill(context.get(), 0, {1, 2, 3}),
                        prefill(make_context(model.get(), options_for("cpu", 1)).get(), 0, {1, 2, 3})));
}

}  // namespace
}  // namespace kvasir::test
