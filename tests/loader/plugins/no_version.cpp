// SPDX-License-Identifier: MIT
//
// Has no version.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = [] {
    kvb_api table = stub::table("no_version");
    table.version = "";
    return table;
  }();
  return &api;
}
