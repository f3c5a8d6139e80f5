// SPDX-License-Identifier: MIT
//
// Every thread sums its own part of a buffer larger than the caches; all start together, the slowest one counts.
#include "memory_speed.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace kvasir::cli {
namespace {

constexpr size_t kWords = size_t{512} * 1024 * 1024 / sizeof(uint64_t);
constexpr int kPasses = 8;

// Eight sums, so that additions do not wait for each other.
uint64_t sum_words(const uint64_t* words, size_t count) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t lane = 0; lane < 8; lane++) sums[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

MemorySpeed measure_memory_speed(uint32_t threads) {
  using Clock = std::chrono::steady_clock;
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  const size_t part = kWords / threads / 8 * 8;
  std::vector<std::vector<uint64_t>> buffers(threads);
  std::vector<uint64_t> sums(threads);
  std::vector<Clock::time_point> marks;  // one per meeting of the threads
  const auto mark = [&]() noexcept { marks.push_back(Clock::now()); };
  marks.reserve(kPasses + 1);
  std::barrier meeting(static_cast<std::ptrdiff_t>(threads), mark);
  const auto work = [&](uint32_t t) {
    buffers[t].assign(part, t + 1);  // the reader touches its pages first
    meeting.arrive_and_wait();
    for (int pass = 0; pass < kPasses; pass++) {
      sums[t] += sum_words(buffers[t].data(), part);
      meeting.arrive_and_wait();
    }
  };
  std::vector<std::jthread> crew;
  for (uint32_t t = 1; t < threads; t++) crew.emplace_back(work, t);
  work(0);
  crew.clear();

  double best = 0;
  for (size_t i = 1; i < marks.size(); i++) {
    const double seconds = std::chrono::duration<double>(marks[i] - marks[i - 1]).count();
    best = std::max(best, static_cast<double>(part * threads * sizeof(uint64_t)) / seconds);
  }
  // The sums are used, so that the reading cannot be left out.
  const bool read = std::all_of(sums.begin(), sums.end(), [](uint64_t sum) { return sum != 0; });
  return {threads, part * threads * sizeof(uint64_t), read ? best : 0};
}

}  // namespace kvasir::cli
