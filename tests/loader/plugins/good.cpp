// SPDX-License-Identifier: MIT
//
// Nothing is wrong with it.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const kvb_api api = stub::table("good");
  return &api;
}
