// SPDX-License-Identifier: MIT
//
// A crew of equal threads that runs one job at a time: a number of chunks, and a body called once for each. The caller
// is a member and takes part. Also runs jobs on the application's executor instead of on threads of its own.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kvasir/types.h"

namespace kvasir::cpu {

// Called for chunk = 0 .. chunks - 1, in any order and on any member, with FloatState set. `member` < size() tells
// which scratch memory is the caller's own. Must not throw and must not wait for another chunk.
using ChunkFn = void (*)(void* arg, uint32_t chunk, uint32_t member);

// The application's executor; parallel_for is NULL when it lends none.
struct Executor {
  kv_parallel_for_fn parallel_for = nullptr;
  void* user = nullptr;
};

// Used by one thread at a time. Members sleep while there is no job.
class Crew {
 public:
  // `size` members, the caller included. Starts fewer threads when the system refuses one, none with an executor.
  Crew(uint32_t size, const Executor& executor);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  uint32_t size() const { return size_; }

  // In a child process after fork the threads do not exist: forgets them, so that the destructor does not wait.
  void abandon_threads() { threads_.clear(); }

  // Returns when all chunks have been run.
  void run(uint32_t chunks, ChunkFn body, void* arg);

 private:
  // A member's own span of the job: generation, end, next. They change together, so that a member that wakes up late,
  // in a later job, can neither take a chunk of it for one of the old job nor run past the end of a span.
  struct alignas(64) Span {
    std::atomic<uint64_t> word{0};
  };
  struct Start {
    Crew* crew;
    uint32_t member;
  };

  void start_threads();
  static void* thread_main(void* start);
  void serve(uint32_t member);
  uint32_t await_job(uint32_t seen);
  void work(uint32_t generation, uint32_t member);
  void run_unit(uint32_t unit, uint32_t member);
  void finish(uint32_t units);
  void await_finish();
  void run_on_threads(uint32_t chunks, ChunkFn body, void* arg);
  void run_on_executor(uint32_t chunks, ChunkFn body, void* arg);

  uint32_t size_;
  const Executor executor_;
  std::vector<pthread_t> threads_;
  std::vector<Start> starts_;
  std::unique_ptr<Span[]> spans_;  // [size]

  // The job. Written by the caller before the spans, read by members that hold a unit of it.
  ChunkFn body_ = nullptr;
  void* arg_ = nullptr;
  uint32_t chunks_ = 0;
  uint32_t grain_ = 1;  // chunks in a unit

  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<uint32_t> left_{0};  // units not finished
  std::atomic<uint32_t> joiner_sleeps_{0};
};

}  // namespace kvasir::cpu
