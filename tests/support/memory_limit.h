// SPDX-License-Identifier: MIT
//
// 256 MB of address space for a part of a test. AddressSanitizer reserves terabytes of it, so there the part runs as it
// is, and the sanitizer's own limits of one allocation and of the resident memory take the place (they come into force
// with KV_ASAN_MEMORY_LIMIT in one source file of the program).
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#if defined(__SANITIZE_ADDRESS__)
#define KV_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KV_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef KV_ADDRESS_SANITIZER
#define KV_ASAN_MEMORY_LIMIT                                                                                   \
  extern "C" __attribute__((used, visibility("default"))) const char* __asan_default_options();                \
  extern "C" const char* __asan_default_options() {                                                            \
    return "max_allocation_size_mb=64:hard_rss_limit_mb=256:quarantine_size_mb=8:allocator_may_return_null=1"; \
  }
#else
#define KV_ASAN_MEMORY_LIMIT
#endif

namespace kvasir::testing {

constexpr size_t kMemoryLimit = size_t{256} << 20;

// Whether more than the limit can be had at once: it must not.
inline bool limit_holds() {
  void* volatile memory = std::malloc(kMemoryLimit);
  const bool holds = memory == nullptr;
  std::free(memory);
  return holds;
}

// Runs `part` under the limit; true when it returned true. It must not use GoogleTest's assertions: outside
// AddressSanitizer it runs in a process of its own, and says on stderr what is wrong.
inline bool with_memory_limit(const std::function<bool()>& part) {
#ifdef KV_ADDRESS_SANITIZER
  return limit_holds() && part();
#else
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {kMemoryLimit, kMemoryLimit};
    const bool passed = setrlimit(RLIMIT_AS, &limit) == 0 && limit_holds() && part();
    std::fflush(nullptr);
    _exit(passed ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) std::fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
#endif
}

}  // namespace kvasir::testing
