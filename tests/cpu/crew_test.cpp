// SPDX-License-Identifier: MIT
//
// The crew: every chunk once, on its own threads and on executors, under stress, idle without using a processor.
#include "crew.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kvasir::cpu {
namespace {

struct Counts {
  explicit Counts(uint32_t chunks) : hits(chunks) {}
  std::vector<std::atomic<uint32_t>> hits;
  std::atomic<uint32_t> highest_member{0};

  static void body(void* arg, uint32_t chunk, uint32_t member) {
    Counts& counts = *static_cast<Counts*>(arg);
    counts.hits[chunk]++;
    for (uint32_t seen = counts.highest_member; seen < member;)
      if (counts.highest_member.compare_exchange_weak(seen, member)) break;
  }
};

void expect_each_once(Crew& crew, uint32_t chunks) {
  Counts counts(chunks);
  crew.run(chunks, Counts::body, &counts);
  for (uint32_t i = 0; i < chunks; i++) ASSERT_EQ(counts.hits[i], 1u) << "chunk " << i << " of " << chunks;
  EXPECT_LT(counts.highest_member, crew.size());
}

TEST(Crew, EveryChunkOnce) {
  for (const uint32_t size : {1u, 2u, 3u, 5u, 8u}) {
    Crew crew(size, {});
    EXPECT_EQ(crew.size(), size);
    for (const uint32_t chunks : {0u, 1u, 2u, 7u, 64u, 1000u}) expect_each_once(crew, chunks);
  }
}

TEST(Crew, MoreChunksThanUnits) {
  Crew crew(3, {});
  expect_each_once(crew, 200001);
}

TEST(Crew, SizeZeroIsTheCallerAlone) {
  Crew crew(0, {});
  EXPECT_EQ(crew.size(), 1u);
  expect_each_once(crew, 10);
}

TEST(Crew, ManyShortJobs) {
  Crew crew(4, {});
  std::atomic<uint64_t> sum{0};
  for (uint32_t job = 0; job < 3000; job++) {
    crew.run(
        job % 9, [](void* arg, uint32_t chunk, uint32_t) { *static_cast<std::atomic<uint64_t>*>(arg) += chunk + 1; },
        &sum);
  }
  uint64_t want = 0;
  for (uint32_t job = 0; job < 3000; job++) want += uint64_t{job % 9} * (job % 9 + 1) / 2;
  EXPECT_EQ(sum, want);
}

// Jobs after pauses in which the members have gone to sleep.
TEST(Crew, WakesUpFromSleep) {
  Crew crew(3, {});
  for (int i = 0; i < 20; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect_each_once(crew, 50);
  }
}

TEST(Crew, CallerWaitsForASlowMember) {
  Crew crew(2, {});
  std::atomic<uint32_t> done{0};
  crew.run(
      2,
      [](void* arg, uint32_t, uint32_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++*static_cast<std::atomic<uint32_t>*>(arg);
      },
      &done);
  EXPECT_EQ(done, 2u);
}

TEST(Crew, IdleMembersUseNoProcessor) {
  Crew crew(4, {});
  expect_each_once(crew, 100);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = double(after.tv_sec - before.tv_sec) + double(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.1);
}

TEST(Crew, FewerThreadsWhenTheSystemRefuses) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space";
#endif
  rlimit tight = before;
  tight.rlim_cur = 1 << 28;  // no room for the stacks of 64 threads
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  uint32_t size = 0;
  {
    Crew crew(64, {});
    size = crew.size();
    expect_each_once(crew, 1000);
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_GE(size, 1u);
  EXPECT_LT(size, 64u);
}

TEST(Crew, ExecutorThatRunsOneAfterAnother) {
  uint32_t calls = 0;
  const Executor executor{[](void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
                            ++*static_cast<uint32_t*>(user);
                            for (uint32_t i = count; i-- > 0;) body(arg, i);
                          },
                          &calls};
  Crew crew(3, executor);
  expect_each_once(crew, 100);
  EXPECT_EQ(calls, 1u);
}

TEST(Crew, ExecutorWithThreads) {
  const Executor executor{[](void*, uint32_t count, kv_parallel_body_fn body, void* arg) {
                            std::vector<std::thread> threads;
                            for (uint32_t i = 0; i < count; i++) threads.emplace_back([=] { body(arg, i); });
                            for (std::thread& thread : threads) thread.join();
                          },
                          nullptr};
  Crew crew(4, executor);
  for (int i = 0; i < 20; i++) expect_each_once(crew, 200);
}

TEST(Crew, TwoCrewsOnTwoThreads) {
  const auto work = [] {
    Crew crew(3, {});
    for (int i = 0; i < 300; i++) expect_each_once(crew, 20);
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace kvasir::cpu
