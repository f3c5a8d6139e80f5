// SPDX-License-Identifier: MIT
//
// Processes that end without releasing anything, idle or with work running on another thread: their own exit status, no
// crash, no hang. (Case P25's kind.)
#include "support.h"

namespace kvasir::test {
namespace {

int run_probe(const std::string& way, const char* state) {
  return in_child([&] {
    const std::string model = demo_model();
    execl(KV_TEST_EXIT_PROBE, KV_TEST_EXIT_PROBE, model.c_str(), way.c_str(), state, nullptr);
    return 127;
  });
}

class ExitAlive : public ::testing::TestWithParam<const char*> {};

TEST_P(ExitAlive, Idle) {
  for (int i = 0; i < 3; i++) EXPECT_EQ(run_probe(GetParam(), "idle"), 42);
}

TEST_P(ExitAlive, WithWorkRunning) {
  for (int i = 0; i < 10; i++) EXPECT_EQ(run_probe(GetParam(), "working"), 42) << "run " << i;
}

INSTANTIATE_TEST_SUITE_P(Ways, ExitAlive, ::testing::Values("return", "exit", "quick_exit", "_exit", "thread"),
                         [](const auto& p) { return std::string(p.param[0] == '_' ? "underscore_exit" : p.param); });

}  // namespace
}  // namespace kvasir::test
