// SPDX-License-Identifier: MIT
//
// The backends "faulty_ref" and "faulty_cpu": ref and cpu whose n-th call on a queue or device fails with a status of
// the test's choice. They are in the static table of the program that links faulty_backend.cpp.
#pragma once

#include <cstdint>

#include "kvasir/types.h"

namespace kvasir::test {

struct BackendFault {
  kv_status status = KV_OK;
  uint64_t calls_left = 0;  // 1: the next fallible call fails; 0: none does
  bool late = false;        // the failing call does its work first, as a device does that fails when it is waited for
  bool fired = false;
};

// Of the next calls; one for all devices, used by one thread.
extern BackendFault backend_fault;

}  // namespace kvasir::test
