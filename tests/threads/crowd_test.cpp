// SPDX-License-Identifier: MIT
//
// More threads than processors, neighbours that want them too, and nothing to do: same bits, a sane amount of processor
// time, none at all when idle. Times are of the processor, not of the clock; ratios to the clock are printed. (Case P20.)
#include <sched.h>
#include <time.h>

#include "crew.h"
#include "support.h"

namespace kvasir::test {
namespace {

// Processor time of this process so far, in seconds; finer than getrusage.
double processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double clock_time() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

bool pin_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int p : processors) CPU_SET(p, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

struct Timing {
  uint64_t hash = 0;
  double processor = 0, clock = 0;
};

// 50 steps of one token each.
Timing decode_fifty(kv_model* model, uint32_t threads) {
  const ContextPtr context = make_context(model, options_for("cpu", threads));
  prefill(context.get(), 0, {1, 2, 3});
  Hash hash;
  const double processor = processor_time(), clock = clock_time();
  for (int32_t i = 0; i < 50; i++) {
    const std::vector<float> row = decode(context.get(), 0, i);
    hash.floats(row.data(), row.size());
  }
  return {hash.value(), processor_time() - processor, clock_time() - clock};
}

// The least of some runs: neighbours only ever add.
Timing best_of(int runs, kv_model* model, uint32_t threads) {
  Timing best = decode_fifty(model, threads);
  for (int i = 1; i < runs; i++) {
    const Timing other = decode_fifty(model, threads);
    EXPECT_EQ(other.hash, best.hash);
    best.processor = std::min(best.processor, other.processor);
    best.clock = std::min(best.clock, other.clock);
  }
  return best;
}

class Crowd : public ::testing::Test {
 protected:
  RuntimePtr runtime_ = make_runtime();
  ModelPtr model_ = typed_model(runtime_.get(), KV_TYPE_F32, 512);
};

TEST_F(Crowd, MoreThreadsThanProcessors) {
  const Timing two = best_of(5, model_.get(), 2);
  for (const uint32_t threads : {1U, 4U, 16U, 256U, UINT32_MAX}) {
    const Timing many = best_of(5, model_.get(), threads);
    std::printf("  %u threads: %.2f of the processor time of 2 threads, %.2f of the time\n", threads,
                many.processor / two.processor, many.clock / two.clock);
    EXPECT_EQ(many.hash, two.hash) << threads << " threads";
    EXPECT_LT(many.processor / two.processor, 5.0) << threads << " threads";
  }
}

// A queue never has more members than the process has processors, whatever is asked for.
TEST_F(Crowd, ThreadsAreClampedToTheProcessors) {
  const size_t processors = allowed_processors().size();
  const ContextPtr first = make_context(model_.get(), options_for("cpu", 1));
  for (const uint32_t threads : {0U, 1U, 2U, 256U, UINT32_MAX}) {
    const size_t before = count_threads();
    const ContextPtr context = make_context(model_.get(), options_for("cpu", threads));
    const size_t wanted = threads == 0 ? processors : std::min<size_t>(threads, processors);
    EXPECT_LE(count_threads() - before, wanted - 1) << threads << " threads";  // a container may allow fewer
    if (threads == 1) {
      EXPECT_EQ(count_threads(), before);
    }
  }
}

TEST_F(Crowd, TheDefaultRespectsAffinity) {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "this process has one processor anyway";
  const uint64_t want = decode_fifty(model_.get(), 1).hash;
  const int result = in_child([&] {
    if (!pin_to({processors.back()})) return 10;
    const RuntimePtr runtime = make_runtime();
    const ModelPtr model = typed_model(runtime.get(), KV_TYPE_F32, 512);
    const size_t before = count_threads();
    const ContextPtr context = make_context(model.get(), options_for("cpu", 0));
    if (count_threads() != before) return 11;
    return decode_fifty(model.get(), 0).hash == want ? 0 : 12;
  });
  EXPECT_EQ(result, 0);
}

// A process that does nothing but compute, on every processor.
TEST_F(Crowd, BusyNeighbours) {
  const Timing alone = best_of(3, model_.get(), 2);
  std::vector<pid_t> neighbours;
  for (const int processor : allowed_processors()) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      pin_to({processor});
      alarm(60);
      for (std::atomic<uint64_t> i{0};; i.fetch_add(1, std::memory_order_relaxed)) {
      }
    }
    neighbours.push_back(child);
  }
  const Timing crowded = best_of(3, model_.get(), 2);
  for (const pid_t child : neighbours) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  std::printf("  with a busy loop on each processor: %.2f of the time, %.2f of the processor time\n",
              crowded.clock / alone.clock, crowded.processor / alone.processor);
  EXPECT_EQ(crowded.hash, alone.hash);
  EXPECT_LT(crowded.processor / alone.processor, 5.0);
}

TEST_F(Crowd, IdleCostsNothing) {
  std::vector<ContextPtr> contexts;
  for (const uint32_t threads : {1U, 2U, 0U, 16U, 2U, 2U}) {
    contexts.push_back(make_context(model_.get(), options_for("cpu", threads)));
    prefill(contexts.back().get(), 0, {1, 2, 3});
  }
  std::vector<std::unique_ptr<cpu::Crew>> crews;  // of any size, beyond what contexts are given
  for (uint32_t size = 1; size <= 16; size++) {
    crews.push_back(std::make_unique<cpu::Crew>(size, cpu::Executor{}));
    crews.back()->run(
        64, [](void*, uint32_t, uint32_t) {}, nullptr);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until all have gone to sleep
  const double before = processor_time();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double used = processor_time() - before;
  std::printf("  %.1f ms of processor time in 2 s, %zu threads\n", used * 1000, count_threads());
  EXPECT_LT(used, 0.05);
}

// Crews larger than the machine: every chunk once. No queue makes one, so what they cost is only printed.
TEST(CrowdedCrew, OfAnySize) {
  const auto run = [](uint32_t size) {
    cpu::Crew crew(size, {});
    std::vector<std::atomic<uint32_t>> hits(512);
    const auto body = [](void* arg, uint32_t chunk, uint32_t) {
      std::atomic<uint32_t> x{0};
      for (int i = 0; i < 400; i++) x++;
      (*static_cast<std::vector<std::atomic<uint32_t>>*>(arg))[chunk]++;
    };
    const double before = processor_time();
    for (int job = 0; job < 50; job++) crew.run(512, body, &hits);
    const double used = processor_time() - before;
    for (const auto& hit : hits) EXPECT_EQ(hit, 50U);
    return used;
  };
  const auto best = [&](uint32_t size) { return std::min({run(size), run(size), run(size)}); };
  const double two = best(2);
  for (const uint32_t size : {1U, 4U, 16U, 256U}) {
    std::printf("  crew of %u: %.2f of the processor time of 2\n", size, best(size) / two);
  }
}

}  // namespace
}  // namespace kvasir::test
