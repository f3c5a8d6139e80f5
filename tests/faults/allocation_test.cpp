// SPDX-License-Identifier: MIT
//
// Every allocation, thread start and file access of every operation fails once: alone, and with all that follow. Each
// time there is a status and a sentence, the state is as before, nothing leaks, and the operation then works and yields
// what it yields undisturbed.
#include <gtest/gtest.h>

#include "faults/injector.h"
#include "faults/operations.h"

namespace kvasir::test {
namespace {

struct Mode {
  const char* name;
  uint32_t kinds;
  bool persistent;
};
constexpr Mode kModes[] = {{"one allocation", kMemory, false}, {"all allocations", kMemory, true},
                           {"one file access", kFiles, false}, {"all file accesses", kFiles, true},
                           {"one thread", kThreads, false},    {"all threads", kThreads, true}};

#if defined(KV_TEST_DEEP)
constexpr uint64_t kDenseCalls = UINT64_MAX;
#else
constexpr uint64_t kDenseCalls = 100;
#endif
constexpr uint64_t kStride = 7;

constexpr const char* kSanitized = "sanitizers own malloc: nothing can be made to fail";

bool fits(uint32_t kinds, kv_status status) {
  if (kinds == kMemory) return status == KV_OUT_OF_MEMORY;
  // The system's reason decides; a plugin folder that cannot be read holds no plugin.
  return status == KV_IO || status == KV_NOT_FOUND || status == KV_OUT_OF_MEMORY;
}

std::string undisturbed(const Operation& operation, const std::string& device, uint32_t threads) {
  World world(operation.stage, device, threads);
  operation.prepare(world);
  world.yielded.clear();
  Error e;
  EXPECT_EQ(operation.run(world, &e), KV_OK) << operation.name << ": " << e.message;
  return world.yielded;
}

// The operation with its n-th call failing; false when it makes fewer than n.
bool run_with_failure(const Operation& operation, const std::string& device, uint32_t threads, const Mode& mode,
                      uint64_t n, const std::string& want) {
  World world(operation.stage, device, threads);
  operation.prepare(world);
  world.remember();
  world.yielded.clear();
  Error e;
  kv_status status = KV_OK;
  bool fired = false;
  {
    const Faults faults(mode.kinds, n, mode.persistent);
    status = operation.run(world, &e);
    fired = faults.fired();
  }
  if (status == KV_OK) {  // whatever failed was harmless
    EXPECT_TRUE(world.yielded == want || (operation.tells_failures && fired)) << "another result";
    return fired;
  }
  EXPECT_TRUE(fired) << kv_status_name(status) << ": " << e.message;
  EXPECT_TRUE(fits(mode.kinds, status)) << kv_status_name(status) << ": " << e.message;
  EXPECT_STRNE(e.message, "") << "no sentence";
  EXPECT_EQ(world.undone ? "" : world.state(), "") << "the state after " << kv_status_name(status) << ": " << e.message;
  world.yielded.clear();
  Error again;
  status = operation.run(world, &again);
  EXPECT_EQ(status, KV_OK) << "the next call: " << again.message << "\nafter: " << e.message;
  EXPECT_TRUE(world.yielded == want) << "the next call yields something else, after: " << e.message;
  return true;
}

int failures_so_far() { return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count(); }

void sweep(const Operation& operation, const std::string& device, uint32_t threads) {
  const std::string want = undisturbed(operation, device, threads);
  for (const Mode& mode : kModes) {
    bool fired = true;
    // Where all that follow fail too, the first ones and samples of the rest; the long tier takes every one.
    for (uint64_t n = 1; fired; n += mode.persistent && n > kDenseCalls ? kStride : 1) {
      SCOPED_TRACE(operation.name + " on " + device + ": " + mode.name + " from number " + std::to_string(n));
      const int64_t before = live_blocks();
      const int reported = failures_so_far();
      fired = run_with_failure(operation, device, threads, mode, n, want);
      if (failures_so_far() != reported) break;  // one report for each mode is enough, and reports take memory
      EXPECT_EQ(live_blocks(), before) << "blocks leaked";
      ASSERT_LT(n, 100000U);
    }
  }
}

class AllocationFailures : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { files_ = new Files; }
  static void TearDownTestSuite() {
    delete files_;
    files_ = nullptr;
  }
  static Files* files_;
};
Files* AllocationFailures::files_ = nullptr;

TEST_P(AllocationFailures, Models) {
  if (!can_inject()) GTEST_SKIP() << kSanitized;
  for (const Operation& operation : model_operations(*files_)) sweep(operation, GetParam(), 1);
}

TEST_P(AllocationFailures, Contexts) {
  if (!can_inject()) GTEST_SKIP() << kSanitized;
  for (const Operation& operation : context_operations()) sweep(operation, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(Backends, AllocationFailures, ::testing::ValuesIn(backends()),
                         [](const auto& p) { return p.param; });

#if defined(KV_TEST_DEEP)
TEST(AllocationFailuresOfChoice, ContextOnTheBestDevice) {
  if (!can_inject()) GTEST_SKIP() << kSanitized;
  sweep(automatic_context(), "cpu", 2);
}
#endif

TEST(AllocationFailuresOfText, EveryOperation) {
  if (!can_inject()) GTEST_SKIP() << kSanitized;
  const Files files;
  for (const Operation& operation : text_operations(files)) sweep(operation, "ref", 1);
}

}  // namespace
}  // namespace kvasir::test
