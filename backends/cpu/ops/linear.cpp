// SPDX-License-Identifier: MIT
//
// LINEAR.
#include "ops/linear.h"

#include <algorithm>

#include "lowering.h"

namespace kvasir::cpu {
namespace {

// Chunks of a stage for each member: small enough to even out members that are slowed down, large enough to stream.
constexpr uint32_t kChunksPerMember = 8;

}  // namespace

bool LinearStage::accepts(OperandType operand, uint32_t value, const LinearPart& part) const {
  return operand == operand_ && value == value_ &&
         std::all_of(parts_.begin(), parts_.end(), [&](const LinearPart& other) { return disjoint(other.y, part.y); });
}

void LinearStage::add(const LinearPart& part) {
  parts_.push_back(part);
  groups_ += part.groups();
  writes_output = writes_output || part.y.host;
}

uint32_t LinearStage::groups_per_chunk(const StepView& view) const {
  return groups_ / (view.members * kChunksPerMember) + 1;
}

uint32_t LinearStage::chunks(const StepView& view) const {
  if (view.rows(x_.output_rows) == 0) return 0;
  const uint32_t per_chunk = groups_per_chunk(view);
  return (groups_ + per_chunk - 1) / per_chunk;
}

// A chunk is a run of row groups of all parts, one part after the other.
void LinearStage::run(const StepView& view, uint32_t chunk, uint32_t) const {
  const uint32_t per_chunk = groups_per_chunk(view);
  uint32_t first = chunk * per_chunk, left = std::min(per_chunk, groups_ - first);
  for (const LinearPart& part : parts_) {
    const uint32_t groups = part.groups();
    if (first >= groups) {
      first -= groups;
      continue;
    }
    const uint32_t count = std::min(left, groups - first);
    run_part(view, part, first, first + count);
    left -= count;
    first = 0;
    if (left == 0) return;
  }
}

void LinearStage::run_part(const StepView& view, const LinearPart& part, uint32_t first, uint32_t end) const {
  LinearArgs args{};
  args.type = part.type;
  args.operand = operand_;
  args.weight = part.packed_here ? view.at<void>(part.packed) : view.weights[part.weight]->matrix();
  args.width = part.width;
  args.first_row = part.first_row;
  args.rows = part.rows;
  args.x = operand_ == OperandType::kF32 ? x_.row(view, 0) : view.at<void>(prepared_);
  args.x_stride_bytes = row_bytes_;
  args.tokens = view.rows(x_.output_rows);
  args.y = part.y.row(view, 0);
  args.y_stride = part.y.width;
  args.bias = part.bias == KVB_NONE ? nullptr : view.weights[part.bias]->vector() + part.first_row;
  args.residual = part.adds ? part.residual.row(view, 0) : nullptr;
  args.residual_stride = part.residual.width;
  view.kernels().linear(args, first, end);
}

OperandType linear_operand(const sdk::Program& program, const kvb_op& op) {
  const kvb_value& weight = *program.in(op, 1);
  if (is_vector(weight.type, weight.depth, weight.rows)) return OperandType::kF32;
  return operand_type(weight_type(weight.type), program.desc.compute_mode == KV_COMPUTE_FAST);
}

kv_status lower_linear(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const kvb_value& weight = *lowering.program().in(op, 1);
  const OperandType operand = linear_operand(lowering.program(), op);
  LinearPart part{};
  part.weight = lowering.weight_index(op.in[1]);
  part.packed_here = is_vector(weight.type, weight.depth, weight.rows);
  part.type = part.packed_here ? WeightType::kF32 : weight_type(weight.type);
  if (part.packed_here) part.packed = lowering.own_pack(op.in[1]);
  part.width = weight.width;
  part.first_row = op.param[0];
  part.y = lowering.tensor(op.out[0]);
  part.rows = part.y.width;
  part.bias = op.in[2] == KVB_NONE ? KVB_NONE : lowering.weight_index(op.in[2]);
  part.value = op.out[0];

  LinearStage* last = lowering.last_linear();
  if (last != nullptr && last->accepts(operand, op.in[0], part)) {
    last->add(part);
    return KV_OK;
  }
  const Tensor x = lowering.tensor(op.in[0]);
  size_t row_bytes = size_t{x.width} * sizeof(float);
  const uint64_t prepared = operand == OperandType::kF32 ? 0 : lowering.prepared(op.in[0], operand, &row_bytes);
  auto stage = std::make_unique<LinearStage>(operand, x, prepared, row_bytes, op.in[0]);
  stage->add(part);
  lowering.add_linear_stage(std::move(stage));
  return KV_OK;
}

}  // namespace kvasir::cpu
