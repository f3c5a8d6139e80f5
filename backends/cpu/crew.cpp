// SPDX-License-Identifier: MIT
//
// Members spin for a short while between jobs and then sleep on a futex, as does the caller at the end of a job: a core
// that nobody uses is free for a member that the system has parked behind somebody else's process.
#include "crew.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "simd/float_state.h"

namespace kvasir::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// How long to spin before sleeping. Waking a sleeper costs 1 to 2 microseconds, and the host's work between two steps
// (sampling) takes some tens of them.
constexpr auto kSpin = std::chrono::microseconds(50);

constexpr uint32_t kMaxUnits = 0xffff;  // 16 bits of a span's word

void futex_wait(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Spins until `ready` or until the time is over; says whether it became ready.
template <class Ready>
bool spin_until(const Ready& ready) {
  Clock::time_point end{};
  for (uint32_t i = 1;; i++) {
    if (ready()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (i % 64 != 0) continue;
    const Clock::time_point now = Clock::now();
    if (end == Clock::time_point{}) end = now + kSpin;
    if (now >= end) return false;
  }
}

uint64_t pack(uint32_t generation, uint32_t end, uint32_t next) {
  return uint64_t{generation} << 32 | uint64_t{end} << 16 | next;
}

}  // namespace

Crew::Crew(uint32_t size, const Executor& executor) : size_(std::max(size, 1u)), executor_(executor) {
  spans_ = std::make_unique<Span[]>(size_);
  if (executor_.parallel_for == nullptr) start_threads();
}

Crew::~Crew() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(&generation_, INT_MAX);
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

// Signals are for the application's threads: members are started with all of them blocked.
void Crew::start_threads() {
  threads_.reserve(size_ - 1);
  starts_.reserve(size_ - 1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (uint32_t member = 1; member < size_; member++) {
    starts_.push_back({this, member});
    pthread_t thread;
    if (pthread_create(&thread, nullptr, thread_main, &starts_.back()) != 0) break;
    threads_.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  size_ = static_cast<uint32_t>(threads_.size()) + 1;
}

void* Crew::thread_main(void* start) {
  const Start* mine = static_cast<const Start*>(start);
  pthread_setname_np(pthread_self(), "kvasir-cpu");
  const FloatState state;
  mine->crew->serve(mine->member);
  return nullptr;
}

void Crew::serve(uint32_t member) {
  for (uint32_t seen = 0;;) {
    seen = await_job(seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    work(seen, member);
  }
}

// The generation of the next job after `seen`.
uint32_t Crew::await_job(uint32_t seen) {
  const auto ready = [&] { return generation_.load(std::memory_order_acquire) != seen; };
  while (!spin_until(ready)) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (generation_.load(std::memory_order_seq_cst) == seen) futex_wait(&generation_, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  return generation_.load(std::memory_order_acquire);
}

// The application's executor is called in the application's own floating-point state.
void Crew::run(uint32_t chunks, ChunkFn body, void* arg) {
  if (size_ > 1 && chunks > 1 && executor_.parallel_for != nullptr) return run_on_executor(chunks, body, arg);
  const FloatState state;
  if (size_ > 1 && chunks > 1) return run_on_threads(chunks, body, arg);
  for (uint32_t chunk = 0; chunk < chunks; chunk++) body(arg, chunk, 0);
}

void Crew::run_on_threads(uint32_t chunks, ChunkFn body, void* arg) {
  body_ = body;
  arg_ = arg;
  chunks_ = chunks;
  grain_ = (chunks - 1) / kMaxUnits + 1;
  const uint32_t units = (chunks - 1) / grain_ + 1;
  left_.store(units, std::memory_order_relaxed);
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  for (uint32_t i = 0; i < size_; i++) {
    const auto edge = [&](uint32_t k) { return static_cast<uint32_t>(uint64_t{units} * k / size_); };
    spans_[i].word.store(pack(generation, edge(i + 1), edge(i)), std::memory_order_release);
  }
  generation_.store(generation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(&generation_, INT_MAX);
  work(generation, 0);
  await_finish();
}

// Units of the own span, one after the other, so that a member streams through memory; then those of the others.
void Crew::work(uint32_t generation, uint32_t member) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < size_; i++) {
    std::atomic<uint64_t>& word = spans_[(member + i) % size_].word;
    uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
      const uint32_t end = static_cast<uint32_t>(seen >> 16 & 0xffff);
      const uint32_t next = static_cast<uint32_t>(seen & 0xffff);
      if (seen >> 32 != generation || next >= end) break;
      if (!word.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      run_unit(next, member);
      done++;
      seen = word.load(std::memory_order_acquire);
    }
  }
  if (done > 0) finish(done);
}

// The unit is this member's: the job cannot end, and its description cannot change, before finish().
void Crew::run_unit(uint32_t unit, uint32_t member) {
  const uint64_t first = uint64_t{unit} * grain_;
  const uint64_t end = std::min<uint64_t>(first + grain_, chunks_);
  for (uint64_t chunk = first; chunk < end; chunk++) body_(arg_, static_cast<uint32_t>(chunk), member);
}

void Crew::finish(uint32_t units) {
  const bool last = left_.fetch_sub(units, std::memory_order_seq_cst) == units;
  if (last && joiner_sleeps_.load(std::memory_order_seq_cst) != 0) futex_wake(&left_, 1);
}

void Crew::await_finish() {
  const auto ready = [&] { return left_.load(std::memory_order_acquire) == 0; };
  while (!spin_until(ready)) {
    joiner_sleeps_.store(1, std::memory_order_seq_cst);
    if (const uint32_t left = left_.load(std::memory_order_seq_cst); left != 0) futex_wait(&left_, left);
    joiner_sleeps_.store(0, std::memory_order_relaxed);
  }
}

// Each of up to size() bodies takes chunks until there are none; with an executor that runs them one after another the
// first takes all. The caller takes what an executor leaves that drops bodies (a pool that is shutting down).
void Crew::run_on_executor(uint32_t chunks, ChunkFn body, void* arg) {
  struct Job {
    std::atomic<uint32_t> next{0};
    uint32_t chunks;
    ChunkFn body;
    void* arg;
  } job;
  job.chunks = chunks;
  job.body = body;
  job.arg = arg;
  const auto lane = [](void* opaque, uint32_t member) {
    Job& shared = *static_cast<Job*>(opaque);
    const FloatState state;
    for (uint32_t chunk; (chunk = shared.next.fetch_add(1, std::memory_order_relaxed)) < shared.chunks;)
      shared.body(shared.arg, chunk, member);
  };
  executor_.parallel_for(executor_.user, std::min(size_, chunks), lane, &job);
  lane(&job, 0);
}

}  // namespace kvasir::cpu
