// SPDX-License-Identifier: MIT
//
// Built for another draft of the same major.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = [] {
    kvb_api table = stub::table("wrong_draft");
    table.abi_version = KVB_ABI_VERSION + 1;
    return table;
  }();
  return &api;
}
