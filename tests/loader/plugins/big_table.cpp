// SPDX-License-Identifier: MIT
//
// Its table has a member this library does not know.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  struct Longer {
    kvb_api known;
    void (*unknown)();
  };
  static const Longer api = [] {
    Longer table = {stub::table("big_table"), [] {}};
    table.known.struct_size = sizeof table;
    return table;
  }();
  return &api.known;
}
