// SPDX-License-Identifier: MIT
//
// Does in its constructor what a constructor should not: prints, starts a thread, switches denormals off.
#include "stub.h"

#include <chrono>
#include <thread>
#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace {

__attribute__((constructor)) void make_noise() {
  std::fputs("noisy plugin: hello\n", stderr);
  std::fputs("noisy plugin: hello again\n", stdout);
  std::fflush(stdout);
  std::thread([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }).detach();
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

}  // namespace

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = stub::table("noisy");
  return &api;
}
