// SPDX-License-Identifier: MIT
#include "runtime/trace.h"

#include <bit>
#include <new>

#include "base/float_state.h"
#include "program/print.h"

namespace kvasir {

bool all_finite(std::span<const float> values) {
  uint32_t bad = 0;  // no early exit: the loop vectorises
  for (const float value : values)
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & 0x7f800000U) == 0x7f800000U);
  return bad == 0;
}

void TraceRelay::receive(void* self, const kvb_trace_record* record) {
  // Called from inside a plugin: nothing may be thrown through it.
  try {
    static_cast<TraceRelay*>(self)->relay(*record);
  } catch (const std::bad_alloc&) {
    // Only the text of first_bad allocates; without it the message is shorter.
  }
}

void TraceRelay::relay(const kvb_trace_record& record) {
  const kvb_op& op = program_.ops[record.op];
  const bool per_query = record.what != KVB_TRACE_VALUE;
  const bool selected = !per_query && program_.values[op.out[0]].rows == KVB_ROWS_OUTPUTS;
  if (tokens_.empty() || (selected && output_rows_.empty())) return;
  const TraceToken& token = tokens_[per_query ? record.token : selected ? output_rows_[0] : 0];

  kv_trace_record out = {};
  out.struct_size = sizeof out;
  out.layer = op.layer == 0xffff ? UINT32_MAX : op.layer;
  out.name = record.what == KVB_TRACE_SCORES    ? "scores"
             : record.what == KVB_TRACE_WEIGHTS ? "weights"
                                                : program_.names[record.op];
  out.sequence = token.sequence;
  out.position = token.position;
  out.head = record.head;
  out.rows = record.rows;
  out.width = record.width;
  out.first_position = record.first_position;
  out.data = record.data;
  if (first_bad_.empty() && !all_finite({record.data, size_t{record.rows} * record.width})) {
    first_bad_ = op_text(program_, record.op);
  }
  const HostFloatState floats;
  sink_(user_, &out);
}

}  // namespace kvasir
