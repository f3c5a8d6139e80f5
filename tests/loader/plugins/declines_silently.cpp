// SPDX-License-Identifier: MIT
//
// Cannot serve this host, and does not say why.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) { return nullptr; }
