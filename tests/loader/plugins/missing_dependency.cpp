// SPDX-License-Identifier: MIT
//
// Needs a library that is not there.
#include "stub.h"

extern "C" int kv_test_absent();

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = stub::table(kv_test_absent() != 0 ? "missing_dependency" : "");
  return &api;
}
