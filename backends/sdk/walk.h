// SPDX-License-Identifier: MIT
//
// A program as a backend keeps it: its own copy of the values, ops and blob, with access by operand, parameters as the
// type they are, and the runs of ops that form a canonical group. read_program copies and checks only what copying
// needs; verify.h judges the content, and everything else here assumes that it did.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kvasir/backend.h"
#include "sdk/ops.h"
#include "sdk/structs.h"

namespace kvasir::sdk {

inline float float_param(const kvb_op& op, uint32_t index) { return std::bit_cast<float>(op.param[index]); }
inline uint32_t float_bits(float value) { return std::bit_cast<uint32_t>(value); }

// kvb_rope with its frequencies, in a program's blob or in a caller's memory.
inline const double* rope_frequencies(const kvb_rope& rope) {
  return reinterpret_cast<const double*>(reinterpret_cast<const char*>(&rope) + sizeof(kvb_rope));
}

// Ops [first, first + count) that belong together: a canonical group, or one op of none (group 0).
struct OpRun {
  uint32_t group;
  uint32_t first;
  uint32_t count;
};

struct Program {
  kvb_program_desc desc{};  // its three pointers are NULL: the copies below replace them
  std::vector<kvb_value> values;
  std::vector<kvb_op> ops;
  std::vector<uint64_t> blob;
  uint32_t output = KVB_NONE;  // index of the one KVB_VALUE_OUTPUT; set by verify_program

  bool traced() const { return (desc.flags & KVB_PROGRAM_TRACE) != 0; }
  // The value an operand names; NULL for KVB_NONE.
  const kvb_value* value(uint32_t index) const { return index == KVB_NONE ? nullptr : &values[index]; }
  const kvb_value* in(const kvb_op& op, uint32_t index) const { return value(op.in[index]); }
  const kvb_value* out(const kvb_op& op, uint32_t index) const { return value(op.out[index]); }
  const kvb_rope& rope(const kvb_op& op) const {
    return *reinterpret_cast<const kvb_rope*>(reinterpret_cast<const char*>(blob.data()) + op.param[2]);
  }

  // Rows of an activation in a step of `tokens` and `outputs`, all of them: times the rows per token.
  uint64_t rows(const kvb_value& value, uint32_t tokens, uint32_t outputs) const {
    return uint64_t{value.rows == KVB_ROWS_TOKENS ? tokens : outputs} * value.depth;
  }
  uint64_t max_rows(const kvb_value& value) const { return rows(value, desc.max_tokens, desc.max_outputs); }

  // Floats that a step with `outputs` output rows gives to the host: ids of a TOP_K follow its scores.
  uint64_t output_floats(uint32_t outputs) const {
    const auto gives_ids = [this](const kvb_op& op) { return op.code == KVB_OP_TOP_K && op.out[0] == output; };
    const uint64_t scores = uint64_t{outputs} * values[output].width;
    return std::any_of(ops.begin(), ops.end(), gives_ids) ? 2 * scores : scores;
  }

  // The run that starts at op `first`: walk with `for (i = 0; i < ops.size(); i += run_at(i).count)`.
  OpRun run_at(uint32_t first) const {
    const uint16_t group = ops[first].group;
    uint32_t end = first + 1;
    while (group != 0 && end < ops.size() && ops[end].group == group &&
           (ops[end].flags & KVB_OP_FLAG_GROUP_BEGIN) == 0) {
      ++end;
    }
    return {group, first, end - first};
  }
};

inline kv_status read_program(const kvb_program_desc* desc, Program* out, kv_error* error) {
  Program program;
  KV_TRY(read_struct(desc, "the program", &program.desc, error));
  kvb_program_desc& copy = program.desc;
  const StrideView<kvb_value> values(copy.values, copy.value_count, copy.value_stride);
  const StrideView<kvb_op> ops(copy.ops, copy.op_count, copy.op_stride);
  KV_TRY(values.check("the array of values", error));
  KV_TRY(ops.check("the array of ops", error));
  KV_REQUIRE(copy.blob_bytes == 0 || copy.blob != nullptr, error, KV_INVALID_ARGUMENT,
             "the blob is NULL, but has %llu bytes", static_cast<unsigned long long>(copy.blob_bytes));
  KV_REQUIRE(copy.blob_bytes <= UINT32_MAX, error, KV_INVALID_ARGUMENT,
             "the blob has %llu bytes; ops address at most 4294967295",
             static_cast<unsigned long long>(copy.blob_bytes));
  program.values.reserve(values.size());
  for (uint32_t i = 0; i < values.size(); ++i) program.values.push_back(values[i]);
  program.ops.reserve(ops.size());
  for (uint32_t i = 0; i < ops.size(); ++i) program.ops.push_back(ops[i]);
  program.blob.resize(static_cast<size_t>((copy.blob_bytes + 7) / 8));
  if (copy.blob_bytes > 0) std::memcpy(program.blob.data(), copy.blob, static_cast<size_t>(copy.blob_bytes));
  copy.values = nullptr;
  copy.ops = nullptr;
  copy.blob = nullptr;
  *out = std::move(program);
  return KV_OK;
}

}  // namespace kvasir::sdk
