// SPDX-License-Identifier: MIT
//
// Its table ends one pointer early.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = [] {
    kvb_api table = stub::table("small_table");
    table.struct_size = sizeof(kvb_api) - sizeof(void*);
    return table;
  }();
  return &api;
}
