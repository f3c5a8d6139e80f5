// SPDX-License-Identifier: MIT
//
// One op of one step, with its operands resolved, and the function that runs it.
#pragma once

#include <cstdint>

#include "cache.h"
#include "program.h"

namespace kvasir::ref {

// An activation during a step.
struct Matrix {
  float* data;
  uint64_t rows;
  uint32_t width;
  float* row(uint64_t index) const { return data + index * width; }
};

struct OpContext {
  const Program& program;
  const Cache& cache;
  const kvb_step& step;
  uint32_t index;  // of the op

  const kvb_op& op() const { return program.code().ops[index]; }
  bool has(uint32_t i) const { return op().in[i] != KVB_NONE; }
  Matrix in(uint32_t i) const { return matrix(*program.code().in(op(), i)); }
  Matrix out(uint32_t i = 0) const { return matrix(*program.code().out(op(), i)); }
  const Weight& weight(uint32_t i) const { return program.weight(*program.code().in(op(), i)); }
  uint32_t param(uint32_t i) const { return op().param[i]; }
  float real(uint32_t i) const { return sdk::float_param(op(), i); }

  // in[i] is an f32 vector or NONE: its elements, in row buffer `buffer`, or NULL.
  const float* vector(uint32_t i, uint32_t buffer) const;
  // The host asked the step to end early.
  bool stopped() const;

 private:
  Matrix matrix(const kvb_value& value) const {
    return {program.activation(value), program.code().rows(value, step.token_count, step.output_count), value.width};
  }
};

// KV_OK or KV_CANCELLED. Reports SCORES and WEIGHTS of a traced program; VALUE is the caller's.
kv_status run_op(const OpContext& context);

}  // namespace kvasir::ref
