// SPDX-License-Identifier: MIT
//
// A shared library that is no plugin. What it links (good) is one.
#include "stub.h"

extern "C" __attribute__((visibility("default"))) int kv_test_answer() { return 42; }
