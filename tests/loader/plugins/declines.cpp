// SPDX-License-Identifier: MIT
//
// Cannot serve this host, and says why.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error* error) {
  error->code = KV_UNSUPPORTED;
  std::snprintf(error->message, sizeof error->message, "this processor is too old");
  return nullptr;
}
