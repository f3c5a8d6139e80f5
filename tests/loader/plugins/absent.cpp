// SPDX-License-Identifier: MIT
//
// The library missing_dependency is linked with; it is built where nothing finds it.
extern "C" __attribute__((visibility("default"))) int kv_test_absent() { return 1; }
