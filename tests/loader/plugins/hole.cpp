// SPDX-License-Identifier: MIT
//
// A mandatory function is missing.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = [] {
    kvb_api table = stub::table("hole");
    table.queue_wait = nullptr;
    return table;
  }();
  return &api;
}
