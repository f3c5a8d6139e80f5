// SPDX-License-Identifier: MIT
//
// TraceRelay: turns a backend's trace records (op index, token index) into the public ones (name, layer, sequence,
// position), and remembers where the first value that is not finite appeared.
#pragma once

#include <span>
#include <string>

#include "kvasir/kvasir.h"
#include "program/program.h"

namespace kvasir {

struct TraceToken {
  kv_sequence sequence;
  uint64_t position;
};

class TraceRelay {
 public:
  TraceRelay(const Program& program, kv_trace_fn sink, void* user) : program_(program), sink_(sink), user_(user) {}

  bool active() const { return sink_ != nullptr; }
  // The step about to run: [tokens], and the token index of each selected row.
  void begin(std::span<const TraceToken> tokens, std::span<const uint32_t> output_rows) {
    tokens_ = tokens;
    output_rows_ = output_rows;
  }

  // "blk.3: LINEAR q" of the first op whose result was not finite; empty when none or when not tracing.
  const std::string& first_bad() const { return first_bad_; }

  static void receive(void* self, const kvb_trace_record* record);

 private:
  void relay(const kvb_trace_record& record);

  const Program& program_;
  kv_trace_fn sink_;
  void* user_;
  std::span<const TraceToken> tokens_;
  std::span<const uint32_t> output_rows_;
  std::string first_bad_;
};

// Whether all are neither NaN nor infinite.
bool all_finite(std::span<const float> values);

}  // namespace kvasir
