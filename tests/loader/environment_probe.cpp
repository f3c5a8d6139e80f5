// SPDX-License-Identifier: MIT
//
// Prints its effective user, then every directory a registry takes from the environment. environment_test runs it as it
// is and as a set-user-id program.
#include <unistd.h>

#include <cstdio>

#include "loader/registry.h"

// The leak checker traces the process, which a set-user-id program does not permit.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return 1; }

int main() {
  kvasir::LoaderOptions options;
  options.built_in = {};
  kvasir::Registry registry(options, kvb_host{});
  const kvasir::Backend* backend = nullptr;
  const kvasir::Status status = registry.find("nothing_of_that_name", &backend);
  std::printf("user %u\n", static_cast<unsigned>(geteuid()));
  for (const kvasir::CandidateReport& candidate : registry.report())
    if (candidate.origin == kvasir::Origin::kEnvironment) std::printf("directory %s\n", candidate.path.c_str());
  return status.code() == KV_NOT_FOUND ? 0 : 1;
}
