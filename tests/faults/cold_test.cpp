// SPDX-License-Identifier: MIT
//
// The first use of a plugin in a process, with the n-th allocation or file access failing: each in a child of its own,
// because a plugin that was loaded once stays. This process never opens one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "faults/injector.h"
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

enum Outcome : int { kDone = 0, kFired = 1, kWrong = 2 };

struct Case {
  const char* name;
  kv_status (*run)(kv_runtime*, kv_model*, kv_error*);
};

template <int device>
kv_status create_context(kv_runtime*, kv_model* model, kv_error* error) {
  kv_context_options options = sized<kv_context_options>();
  options.device = device == 0 ? "ref" : device == 1 ? "cpu" : nullptr;
  options.max_tokens = 16;
  kv_context* made = nullptr;
  const kv_status status = failing([&] { return kv_context_create(model, &options, &made, error); });
  kv_context_release(made);
  return status;
}

kv_status create_report(kv_runtime* runtime, kv_model*, kv_error* error) {
  kv_backend_report* made = nullptr;
  const kv_status status = failing([&] { return kv_backend_report_create(runtime, &made, error); });
  kv_backend_report_release(made);
  return status;
}

constexpr Case kCases[] = {
#if defined(KV_TEST_DEEP)
    {"the first context on ref", create_context<0>},
    {"the first context on auto", create_context<2>},
#endif
    {"the first context on cpu", create_context<1>},
    {"the first report", create_report},
};

// In the child: the call with a failure, then the call without, which must succeed.
int run_once(const Case& which, uint32_t kinds, uint64_t n, bool persistent) {
  const RuntimePtr runtime = make_runtime();
  kv_model_config config = small_config();
  config.layers = 1;
  const ModelPtr model = random_model(runtime.get(), config, 3);
  Error e;
  bool fired = false;
  kv_status status = KV_OK;
  {
    const Faults faults(kinds, n, persistent);
    status = which.run(runtime.get(), model.get(), &e);
    fired = faults.fired();
  }
  // Of a plugin that the system did not load for want of memory it does not always say why.
  const bool not_loaded = status == KV_NOT_FOUND && std::strstr(e.message, "cannot be loaded") != nullptr;
  const bool fits = not_loaded || status == KV_OK || (status == KV_OUT_OF_MEMORY && kinds == kMemory) ||
                    status == KV_IO || (kinds == kFiles && (status == KV_NOT_FOUND || status == KV_OUT_OF_MEMORY));
  if (!fits || (status != KV_OK && e.message[0] == '\0')) {
    std::fprintf(stderr, "number %llu: %s: %s\n", static_cast<unsigned long long>(n), kv_status_name(status),
                 e.message);
    return kWrong;
  }
  Error again;
  if (which.run(runtime.get(), model.get(), &again) != KV_OK) {
    std::fprintf(stderr, "number %llu: the next call: %s\n  after %s: %s\n", static_cast<unsigned long long>(n),
                 again.message, kv_status_name(status), e.message);
    return kWrong;
  }
  return fired ? kFired : kDone;
}

int run_in_child(const Case& which, uint32_t kinds, uint64_t n, bool persistent) {
  const pid_t child = fork();
  if (child == 0) _exit(run_once(which, kinds, n, persistent));
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  if (WIFSIGNALED(state)) ADD_FAILURE() << "ended by signal " << WTERMSIG(state);
  return WIFEXITED(state) ? WEXITSTATUS(state) : int{kWrong};
}

TEST(ColdFailures, FirstUseOfPlugins) {
  if (!can_inject()) GTEST_SKIP() << "sanitizers own malloc: nothing can be made to fail";
  for (const Case& which : kCases) {
    for (const uint32_t kinds : {uint32_t{kMemory}, uint32_t{kFiles}}) {
      for (const bool persistent : {false, true}) {
        int outcome = kFired;
        for (uint64_t n = 1; outcome == kFired && n < 100000; n++) {
          outcome = run_in_child(which, kinds, n, persistent);
          EXPECT_NE(outcome, kWrong) << which.name << (kinds == kMemory ? ": allocation " : ": file access ") << n
                                     << (persistent ? " and all after it" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::test
