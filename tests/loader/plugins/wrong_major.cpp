// SPDX-License-Identifier: MIT
//
// Right by its name, of another major in its table, which therefore is laid out differently: two words long.
#include "stub.h"

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const uint32_t table[2] = {sizeof table, 7u << 16};
  return reinterpret_cast<const kvb_api*>(table);
}
