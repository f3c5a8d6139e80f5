// SPDX-License-Identifier: MIT
//
// A whole program against ops.h and backend.h: its sizes, each value, each op, and the flow of data: everything read
// has been written before, nothing is overwritten while it is still to be read, exactly one value goes to the host.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/cache_layout.h"
#include "sdk/verify_ops.h"
#include "sdk/walk.h"

namespace kvasir::sdk {

inline constexpr uint32_t kMaxRowWidth = INT32_MAX;

inline kv_status verify_limits(const Program& program, kv_error* error) {
  const kvb_program_desc& desc = program.desc;
  KV_REQUIRE((desc.flags & ~uint32_t{KVB_PROGRAM_TRACE}) == 0, error, KV_UNSUPPORTED,
             "the program has unknown flags 0x%x", desc.flags);
  KV_REQUIRE(desc.reserved == 0, error, KV_UNSUPPORTED, "the program sets a reserved field");
  KV_REQUIRE(desc.max_tokens > 0 && desc.max_sequences > 0 && desc.max_length > 0, error, KV_INVALID_ARGUMENT,
             "the program is for %u tokens, %u sequences, length %u; each must be at least 1", desc.max_tokens,
             desc.max_sequences, desc.max_length);
  KV_REQUIRE(desc.max_tokens <= INT32_MAX && desc.max_outputs <= INT32_MAX && desc.max_length <= INT32_MAX, error,
             KV_INVALID_ARGUMENT, "the program is for %u tokens, %u outputs, length %u; each may be 2147483647 at most",
             desc.max_tokens, desc.max_outputs, desc.max_length);
  KV_REQUIRE(desc.compute_mode == KV_COMPUTE_EXACT || desc.compute_mode == KV_COMPUTE_FAST, error, KV_INVALID_ARGUMENT,
             "compute mode %u is neither exact nor fast", desc.compute_mode);
  KV_REQUIRE(!program.ops.empty(), error, KV_INVALID_ARGUMENT, "the program has no ops");
  return KV_OK;
}

// Bytes of an activation in the largest step.
inline bool activation_bytes(const Program& program, const kvb_value& value, uint64_t* out) {
  uint64_t elements = 0;
  return checked_mul(program.max_rows(value), uint64_t{value.width}, &elements) &&
         checked_mul(elements, uint64_t{4}, out);
}

inline kv_status verify_activation(const Program& program, uint32_t index, kv_error* error) {
  const kvb_value& value = program.values[index];
  const bool output = value.kind == KVB_VALUE_OUTPUT;
  KV_REQUIRE(value.type == KV_TYPE_F32 || (value.type == KVB_TYPE_I32 && !output), error, KV_INVALID_ARGUMENT,
             "activation %u has type %s", index, type_name(value.type));
  KV_REQUIRE(value.rows == KVB_ROWS_TOKENS || value.rows == KVB_ROWS_OUTPUTS, error, KV_INVALID_ARGUMENT,
             "activation %u has %u for rows, which is neither tokens nor outputs", index, value.rows);
  uint64_t bytes = 0;
  KV_REQUIRE(activation_bytes(program, value, &bytes), error, KV_INVALID_ARGUMENT, "activation %u has too many bytes",
             index);
  if (output) {
    KV_REQUIRE(value.rows == KVB_ROWS_OUTPUTS && value.depth == 1 && value.place == 0, error, KV_INVALID_ARGUMENT,
               "value %u goes to the host, but is not [O, width] at place 0", index);
    return KV_OK;
  }
  KV_REQUIRE(value.place % 64 == 0 && range_fits(value.place, bytes, program.desc.scratch_bytes), error,
             KV_INVALID_ARGUMENT, "activation %u is %llu bytes at offset %llu, the scratch has %llu (offsets in 64s)",
             index, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(value.place),
             static_cast<unsigned long long>(program.desc.scratch_bytes));
  return KV_OK;
}

inline kv_status verify_value(const Program& program, uint32_t index, uint32_t weight_count, kv_error* error) {
  const kvb_value& value = program.values[index];
  KV_REQUIRE(value.reserved == 0, error, KV_UNSUPPORTED, "value %u sets a reserved field", index);
  KV_REQUIRE(value.width > 0 && value.width <= kMaxRowWidth && value.rows > 0 && value.depth > 0, error,
             KV_INVALID_ARGUMENT, "value %u is [%u][%u][%u]", index, value.depth, value.rows, value.width);
  if (value.kind == KVB_VALUE_SCRATCH || value.kind == KVB_VALUE_OUTPUT)
    return verify_activation(program, index, error);
  KV_REQUIRE(value.kind == KVB_VALUE_WEIGHT, error, KV_UNSUPPORTED, "value %u has the unknown kind %u", index,
             value.kind);
  KV_REQUIRE(known_type(value.type), error, KV_UNSUPPORTED, "weight value %u has the unknown type %u", index,
             value.type);
  uint64_t bytes = 0;
  KV_REQUIRE(tensor_bytes(value.type, value.depth, value.rows, value.width, &bytes), error, KV_INVALID_ARGUMENT,
             "weight value %u is [%u][%u][%u] in %s, whose blocks are %u wide", index, value.depth, value.rows,
             value.width, type_name(value.type), kTypes[value.type].block);
  KV_REQUIRE(value.place < weight_count, error, KV_INVALID_ARGUMENT, "value %u is weight %llu of %u", index,
             static_cast<unsigned long long>(value.place), weight_count);
  return KV_OK;
}

// Follows the data through the ops. A value is needed from an op that writes it to the last op that reads it before it
// is written again.
class FlowVerifier {
 public:
  FlowVerifier(const Program& program, kv_error* error)
      : program_(program), error_(error), uses_(program.values.size()), written_(program.values.size(), false) {}

  kv_status run() {
    collect_uses();
    for (uint32_t i = 0; i < program_.ops.size(); ++i) {
      KV_TRY(check_inputs(i));
      for (uint32_t k = 0; k < 2; ++k) {
        if (program_.ops[i].out[k] != KVB_NONE) KV_TRY(check_output(i, k));
      }
    }
    KV_REQUIRE(written_[program_.output], error_, KV_INVALID_ARGUMENT, "no op writes the program's output, value %u",
               program_.output);
    return KV_OK;
  }

 private:
  // Reads and writes of one value in the order of ops; within an op reads come first.
  struct Uses {
    std::vector<uint32_t> times;  // 2 * op for a read, 2 * op + 1 for a write
    size_t next = 0;              // cursor of needed()
  };

  void collect_uses() {
    for (uint32_t i = 0; i < program_.ops.size(); ++i) {
      for (const uint32_t operand : program_.ops[i].in) {
        if (operand != KVB_NONE) uses_[operand].times.push_back(2 * i);
      }
      for (const uint32_t operand : program_.ops[i].out) {
        if (operand != KVB_NONE) uses_[operand].times.push_back(2 * i + 1);
      }
    }
  }

  // Whether op `index` must leave the bytes of `value` alone: it is written, and read at this op or later before it is
  // written again; or it is an output of this op too. `index` never falls between two calls.
  bool needed(uint32_t value, uint32_t index) {
    Uses& uses = uses_[value];
    while (uses.next < uses.times.size() && uses.times[uses.next] < 2 * index) ++uses.next;
    if (uses.next == uses.times.size()) return false;
    const uint32_t time = uses.times[uses.next];
    return time == 2 * index + 1 || (written_[value] && time % 2 == 0);
  }

  kv_status check_inputs(uint32_t index) const {
    for (const uint32_t operand : program_.ops[index].in) {
      if (operand == KVB_NONE || program_.values[operand].kind == KVB_VALUE_WEIGHT) continue;
      KV_REQUIRE(written_[operand], error_, KV_INVALID_ARGUMENT, "op %u (%s) reads value %u before it is written",
                 index, op_name(program_.ops[index].code), operand);
    }
    return KV_OK;
  }

  kv_status check_output(uint32_t index, uint32_t k) {
    const kvb_op& op = program_.ops[index];
    const uint32_t target = op.out[k];
    const OpFacts& facts = *op_facts(op.code);
    for (uint32_t i = 0; i < 6; ++i) {
      KV_REQUIRE(op.in[i] != target || (k == 0 && (facts.in_place >> i & 1) != 0), error_, KV_INVALID_ARGUMENT,
                 "op %u (%s) cannot write value %u, its own input", index, facts.name, target);
    }
    KV_REQUIRE(k == 0 || target != op.out[0], error_, KV_INVALID_ARGUMENT, "op %u (%s) writes value %u twice", index,
               facts.name, target);
    for (uint32_t other = 0; other < program_.values.size(); ++other) {
      if (other == target || !overlap(other, target) || !needed(other, index)) continue;
      return fail(error_, KV_INVALID_ARGUMENT, "op %u (%s) writes value %u over value %u, which is still needed", index,
                  facts.name, target, other);
    }
    written_[target] = true;
    return KV_OK;
  }

  bool overlap(uint32_t a, uint32_t b) const {
    const kvb_value& first = program_.values[a];
    const kvb_value& second = program_.values[b];
    if (first.kind != KVB_VALUE_SCRATCH || second.kind != KVB_VALUE_SCRATCH) return false;
    const uint64_t first_end = first.place + program_.max_rows(first) * first.width * 4;
    const uint64_t second_end = second.place + program_.max_rows(second) * second.width * 4;
    return first.place < second_end && second.place < first_end;
  }

  const Program& program_;
  kv_error* error_;
  std::vector<Uses> uses_;     // [values]
  std::vector<bool> written_;  // [values]
};

// Judges everything and sets program.output. `weight_count` is UINT32_MAX where the weights are not known yet
// (program_check). `bad_op` (may be null) gets the op at fault, or KVB_NONE; KV_UNSUPPORTED with an op means that this
// op, its code or one of its features, is unknown here.
inline kv_status verify_program(Program& program, const CacheLayout& cache, uint32_t weight_count, uint32_t* bad_op,
                                kv_error* error) {
  if (bad_op != nullptr) *bad_op = KVB_NONE;
  KV_TRY(verify_limits(program, error));
  program.output = KVB_NONE;
  for (uint32_t i = 0; i < program.values.size(); ++i) {
    KV_TRY(verify_value(program, i, weight_count, error));
    if (program.values[i].kind != KVB_VALUE_OUTPUT) continue;
    KV_REQUIRE(program.output == KVB_NONE, error, KV_INVALID_ARGUMENT, "values %u and %u are both the program's output",
               program.output, i);
    program.output = i;
  }
  KV_REQUIRE(program.output != KVB_NONE, error, KV_INVALID_ARGUMENT, "the program has no output value");
  for (uint32_t i = 0; i < program.ops.size(); ++i) {
    const kv_status status = OpVerifier(program, cache, i, error).run();
    if (status == KV_OK) continue;
    if (bad_op != nullptr) *bad_op = i;
    return status;
  }
  return FlowVerifier(program, error).run();
}

}  // namespace kvasir::sdk
