// SPDX-License-Identifier: MIT
//
// Whatever a test makes of it: the table and the entry function are the test's to change.
#include "shaped.h"

#include "stub.h"

extern "C" __attribute__((visibility("default"))) Shape* kv_test_shape() {
  static Shape shape = {stub::table("shaped"), nullptr};
  return &shape;
}

KV_STUB_ENTRY(const kvb_host* host, kv_error* error) {
  const Shape& shape = *kv_test_shape();
  return shape.entry != nullptr ? shape.entry(host, error) : &shape.api;
}
