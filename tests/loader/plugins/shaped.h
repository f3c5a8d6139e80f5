// SPDX-License-Identifier: MIT
//
// What the plugin `shaped` lends to a test that has opened the same file.
#pragma once

#include "kvasir/backend.h"

struct Shape {
  kvb_api api;
  kvb_query_fn entry;  // runs in place of the entry function; NULL = it hands out `api`
};

using ShapeFunction = Shape* (*)();  // the symbol kv_test_shape
