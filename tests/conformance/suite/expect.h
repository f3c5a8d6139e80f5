// SPDX-License-Identifier: MIT
//
// Calls that must fail, for the groups about objects and faults: the status, the sentence, and that nothing else was
// touched. And what several of these groups need to describe a cache that every backend can have.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "suite/suite.h"

namespace kvasir::conformance {

inline std::string status_text(kv_status status) { return "status " + std::to_string(status); }

// A call that is repeated with and without a place for the error.
using Call = std::function<kv_status(kv_error*)>;

// `call` gives one of `wanted` (an empty list: anything but KV_OK), fills the error with a sentence, and does the same
// without an error. `what` names the call in the report.
inline void refuses(const std::string& what, std::initializer_list<kv_status> wanted, const Call& call) {
  kv_error error;
  std::memset(&error, '#', sizeof error);
  error.struct_size = sizeof error;
  error.code = -1;
  const kv_status status = call(&error);
  check(status != KV_OK, what + " was accepted");
  const bool known = wanted.size() == 0 || std::find(wanted.begin(), wanted.end(), status) != wanted.end();
  std::string list;
  for (const kv_status one : wanted) list += (list.empty() ? "" : " or ") + std::to_string(one);
  check(known, what + " gave " + status_text(status) + " instead of " + list);
  check(error.code == status,
        what + " gave " + status_text(status) + ", but the error says " + std::to_string(error.code));
  const void* end = std::memchr(error.message, 0, sizeof error.message);
  check(end != nullptr && error.message[0] != '\0', what + " left no sentence in the error");
  const kv_status silent = call(nullptr);
  check(silent == status,
        what + " gave " + status_text(status) + ", and without a place for the error " + status_text(silent));
}

inline void succeeds(const std::string& what, const Call& call) {
  kv_error error{};
  const kv_status status = call(&error);
  check(status == KV_OK, what + " gave " + status_text(status) + ": " + error.message);
}

inline std::vector<uint32_t> types_in(uint64_t mask) {
  std::vector<uint32_t> types;
  for (uint32_t type = 1; type < 64; ++type) {
    if ((mask >> type & 1) != 0) types.push_back(type);
  }
  return types;
}

// `wanted` tokens per page, or the nearest number that the device takes.
inline uint32_t page_tokens_near(const testing::TestDevice& device, uint32_t wanted) {
  const auto lowest = static_cast<uint32_t>(device.query(KVB_QUERY_PAGE_TOKENS_MIN));
  const auto highest = static_cast<uint32_t>(device.query(KVB_QUERY_PAGE_TOKENS_MAX));
  return std::clamp(wanted, lowest, highest);
}

// The first of f16, bf16, f32 that keys and values can have, else any that both can.
inline uint32_t plain_cache_type(const testing::TestDevice& device) {
  const uint64_t both = device.query(KVB_QUERY_K_TYPES) & device.query(KVB_QUERY_V_TYPES);
  check(both != 0, "no cache type serves keys and values");
  for (const uint32_t type : {KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_F32}) {
    if ((both >> type & 1) != 0) return type;
  }
  return types_in(both).front();
}

}  // namespace kvasir::conformance
