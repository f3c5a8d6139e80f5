// SPDX-License-Identifier: MIT
//
// Lets an exception of a type nobody else knows out of its entry function.
#include <exception>

#include "stub.h"

namespace {

class Tantrum : public std::exception {
 public:
  const char* what() const noexcept override { return "not in the mood"; }
};

}  // namespace

KV_STUB_ENTRY(const kvb_host*, kv_error*) { throw Tantrum(); }
