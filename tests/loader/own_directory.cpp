// SPDX-License-Identifier: MIT
//
// A library that contains the loader, as libkvasir does; search_test opens it in unusual ways.
#include <cstdio>

#include "loader/search.h"

extern "C" __attribute__((visibility("default"))) void kv_test_own_directory(char* out, size_t capacity) {
  std::snprintf(out, capacity, "%s", kvasir::own_directory().c_str());
}
