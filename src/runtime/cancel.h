// SPDX-License-Identifier: MIT
//
// kv_cancel: one word, set and read atomically. Backends read the word itself (kvb_step.stop).
#pragma once

#include <cstdint>

#include "kvasir/kvasir.h"

struct kv_cancel {
  uint32_t word = 0;
};

namespace kvasir {

inline const uint32_t* stop_word(const kv_cancel* cancel) { return cancel == nullptr ? nullptr : &cancel->word; }

inline bool stop_requested(const uint32_t* stop) {
  return stop != nullptr && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

}  // namespace kvasir
