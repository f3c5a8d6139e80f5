// SPDX-License-Identifier: MIT
//
// Runs the ops of a program in order.
#include "reference/program.h"

#include <stdexcept>
#include <string>

#include "reference/dequantize.h"

namespace kvasir::conformance {

ReferenceProgram::ReferenceProgram(const testing::ProgramBuilder& program) : program_(program) {
  for (const testing::Tensor& tensor : program.weights) {
    const size_t elements = size_t{tensor.depth} * tensor.rows * tensor.width;
    weights_.push_back({tensor.depth, tensor.rows, tensor.width, dequantize(tensor.type, tensor.bytes, elements)});
  }
}

Matrix ReferenceProgram::run(const testing::StepData& step, ReferenceCache& cache, Matrix* last_second) const {
  const StepFacts facts{step.tokens, step.positions, step.sequence_of, step.output_rows, step.embeddings, step.pages};
  std::vector<Matrix> values(program_.values.size());
  for (const kvb_op& op : program_.ops) {
    OpView view{op, facts, program_.blob, cache};
    for (uint32_t i = 0; i < 6; ++i) {
      if (op.in[i] == KVB_NONE) continue;
      const kvb_value& value = program_.values[op.in[i]];
      const bool weight = value.kind == KVB_VALUE_WEIGHT;
      if (weight) view.weight[i] = &weights_[value.place];
      if (!weight) view.in[i] = &values[op.in[i]];
    }
    if (op.code == KVB_OP_KV_STORE) {
      kv_store(view);
      continue;
    }
    const kvb_value& out = program_.values[op.out[0]];
    const size_t rows = out.rows == KVB_ROWS_TOKENS ? step.tokens.size() : step.output_rows.size();
    view.rows = static_cast<uint32_t>(rows) * out.depth;
    view.width = out.width;
    Matrix second, first = run_op(view, &second);
    if (last_second != nullptr) *last_second = second;
    values[op.out[0]] = std::move(first);
    if (op.out[1] != KVB_NONE) values[op.out[1]] = std::move(second);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (program_.values[i].kind == KVB_VALUE_OUTPUT) return values[i];
  }
  throw std::logic_error("a test's program has no output");
}

Matrix ReferenceProgram::run_op(const OpView& view, Matrix* second) const {
  switch (view.op.code) {
    case KVB_OP_EMBED: return embed(view);
    case KVB_OP_RMS_NORM: return rms_norm(view);
    case KVB_OP_LINEAR: return linear(view);
    case KVB_OP_ROPE: return rope(view);
    case KVB_OP_ATTENTION: return attention(view);
    case KVB_OP_GLU: return glu(view);
    case KVB_OP_ADD: return add(view);
    case KVB_OP_SELECT_ROWS: return select_rows(view);
    case KVB_OP_LAYER_NORM: return layer_norm(view);
    case KVB_OP_ACTIVATION: return activation(view);
    case KVB_OP_SCALE: return scale(view);
    case KVB_OP_SOFTCAP: return softcap(view);
    case KVB_OP_COPY_HEADS: return copy_heads(view);
    case KVB_OP_HEAD_LINEAR: return head_linear(view);
    case KVB_OP_MOE_ROUTE: return moe_route(view, second);
    case KVB_OP_MOE_LINEAR: return moe_linear(view);
    case KVB_OP_MOE_SUM: return moe_sum(view);
    case KVB_OP_TOP_K: return top_k(view, second);
    default: throw std::logic_error("the reference has no op " + std::to_string(view.op.code));
  }
}

}  // namespace kvasir::conformance
