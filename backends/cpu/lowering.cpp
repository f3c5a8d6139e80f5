// SPDX-License-Identifier: MIT
//
// The walk over the ops, the memory of a program, and the decisions which ops share a stage. None of them changes bits:
// a stage with several ops computes each element by the same operations as the ops one by one.
#include "lowering.h"

#include <algorithm>

#include "ops/linear.h"
#include "sdk/ops.h"

namespace kvasir::cpu {
namespace {

constexpr uint64_t kLine = 64;

LowerFn lower_function(uint16_t code) {
  switch (code) {
    case KVB_OP_EMBED: return lower_embed;
    case KVB_OP_RMS_NORM: return lower_rms_norm;
    case KVB_OP_LINEAR: return lower_linear;
    case KVB_OP_ROPE: return lower_rope;
    case KVB_OP_KV_STORE: return lower_kv_store;
    case KVB_OP_ATTENTION: return lower_attention;
    case KVB_OP_GLU: return lower_glu;
    case KVB_OP_ADD: return lower_add;
    case KVB_OP_SELECT_ROWS: return lower_select_rows;
    case KVB_OP_ACTIVATION: return lower_activation;
    case KVB_OP_SCALE: return lower_scale;
    default: return nullptr;
  }
}

// Rounds the rows of a value to the operand type of a product.
class Prepare final : public RowOp {
 public:
  Prepare(OperandType type, const Tensor& x, uint64_t out, size_t row_bytes)
      : type_(type), x_(x), out_(out), row_bytes_(row_bytes) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    view.kernels().prepare(type_, x_.row(view, first), x_.width, end - first, x_.width,
                           view.at<std::byte>(out_) + first * row_bytes_, row_bytes_);
  }

 private:
  OperandType type_;
  Tensor x_;
  uint64_t out_;
  size_t row_bytes_;
};

}  // namespace

Lowering::Lowering(const Device& device, const sdk::Program& program, const sdk::CacheLayout& cache,
                   const std::vector<GroupLayout>& groups)
    : device_(device), program_(program), cache_(cache), groups_(groups) {}

kv_status Lowering::run(Lowered* out, uint32_t* bad_op, kv_error* error) {
  out_.bytes = program_.desc.scratch_bytes;
  plan_operands();
  if (program_.traced()) trace_offset_ = take(2 * uint64_t{program_.desc.max_length}, sizeof(float));
  auto ropes = std::make_unique<RopeTables>();
  ropes_ = ropes.get();
  auto first = std::make_unique<RowStage>(false);
  open_rows_ = first.get();
  first->add(std::move(ropes));
  out_.stages.push_back(std::move(first));

  for (uint32_t i = 0; i < program_.ops.size(); i++) {
    if (const kv_status status = lower_op(i, error); status != KV_OK) {
      *bad_op = i;
      return status;
    }
  }
  out_.member_stride = (member_floats_ * sizeof(float) + kLine - 1) / kLine * kLine;
  out_.member_base = take(device_.default_threads, out_.member_stride);
  KV_REQUIRE(!overflow_, error, KV_OUT_OF_MEMORY, "the program needs more memory than 64 bits can count");
  *out = std::move(out_);
  return KV_OK;
}

kv_status Lowering::lower_op(uint32_t index, kv_error* error) {
  const kvb_op& op = program_.ops[index];
  const LowerFn lower = lower_function(op.code);
  KV_REQUIRE(lower != nullptr, error, KV_UNSUPPORTED, "op %u is %s, which the cpu backend does not run", index,
             sdk::op_name(op.code));
  for (const uint32_t value : {op.in[0], op.in[1], op.out[0]}) {
    const kvb_value* known = program_.value(value);
    KV_REQUIRE(known == nullptr || known->kind == KVB_VALUE_WEIGHT || known->depth == 1, error, KV_UNSUPPORTED,
               "op %u (%s) works on %u rows per token, which the cpu backend does not run", index,
               sdk::op_name(op.code), known->depth);
  }
  for (const uint32_t value : op.in) {
    const kvb_value* known = program_.value(value);
    KV_REQUIRE(
        known == nullptr || known->kind != KVB_VALUE_WEIGHT || (kWeightTypesMask & sdk::type_bit(known->type)) != 0,
        error, KV_UNSUPPORTED, "op %u (%s) has a weight of type %s, which the cpu backend does not run", index,
        sdk::op_name(op.code), sdk::type_name(known->type));
  }
  // A traced program runs op by op.
  if (program_.traced() && index > 0) {
    open_rows_ = nullptr;
    last_linear_ = nullptr;
  }
  KV_TRY(lower(*this, op, index, error));
  finish_op(index);
  return KV_OK;
}

void Lowering::finish_op(uint32_t index) {
  const kvb_op& op = program_.ops[index];
  if (op.out[0] != KVB_NONE) forget_overwritten(tensor(op.out[0]));
  if (program_.traced()) out_.stages.back()->traced_op = index;
}

Tensor Lowering::tensor(uint32_t index) const {
  const kvb_value& value = program_.values[index];
  Tensor tensor;
  tensor.width = value.width;
  tensor.output_rows = value.rows == KVB_ROWS_OUTPUTS;
  tensor.host = value.kind == KVB_VALUE_OUTPUT;
  tensor.offset = value.place;
  tensor.max_rows = program_.max_rows(value);
  return tensor;
}

uint64_t Lowering::take(uint64_t count, uint64_t bytes_each) {
  uint64_t bytes = 0, start = 0, end = 0;
  overflow_ =
      overflow_ || !sdk::checked_mul(count, bytes_each, &bytes) || !sdk::checked_add(out_.bytes, kLine - 1, &start);
  start = start / kLine * kLine;
  overflow_ = overflow_ || !sdk::checked_add(start, bytes, &end);
  out_.bytes = end;
  return start;
}

void Lowering::need_member_scratch(uint64_t floats) { member_floats_ = std::max(member_floats_, floats); }

uint64_t Lowering::own_pack(uint32_t value) {
  const uint32_t weight = weight_index(value), width = program_.values[value].width;
  for (const OwnPack& pack : out_.own_packs) {
    if (pack.weight == weight) return pack.offset;
  }
  out_.own_packs.push_back({weight, width, take(1, packed_bytes(WeightType::kF32, 1, width))});
  return out_.own_packs.back().offset;
}

uint32_t Lowering::add_attention_plan(const AttentionPlan& plan) {
  const auto& plans = out_.attention_plans;
  const auto same = [&](const AttentionPlan& other) { return other.shape() == plan.shape(); };
  const auto found = std::find_if(plans.begin(), plans.end(), same);
  if (found != plans.end()) return static_cast<uint32_t>(found - plans.begin());
  AttentionPlan placed = plan;
  const uint64_t tiles = take(program_.desc.max_tokens, sizeof(AttentionTile));
  placed.place(tiles, take(placed.slots(), placed.slot_floats() * sizeof(float)));
  out_.attention_plans.push_back(placed);
  return static_cast<uint32_t>(plans.size()) - 1;
}

// Every value may stay where it is while other rows of the stage are at another op, or the op starts a new stage.
bool Lowering::joins_row_stage(bool output_rows, const std::vector<Tensor>& reads,
                               const std::vector<Tensor>& writes) const {
  if (open_rows_ == nullptr || open_rows_->output_rows() != output_rows) return false;
  const auto all_compatible = [](const std::vector<Tensor>& some, const std::vector<Tensor>& others) {
    return std::all_of(some.begin(), some.end(), [&](const Tensor& a) {
      return std::all_of(others.begin(), others.end(), [&](const Tensor& b) { return row_compatible(a, b); });
    });
  };
  return all_compatible(writes, open_reads_) && all_compatible(writes, open_writes_) &&
         all_compatible(reads, open_writes_);
}

void Lowering::add_row_op(std::unique_ptr<RowOp> op, bool output_rows, std::vector<Tensor> reads,
                          std::vector<Tensor> writes) {
  if (!joins_row_stage(output_rows, reads, writes)) {
    auto stage = std::make_unique<RowStage>(output_rows);
    RowStage* rows = stage.get();
    add_stage(std::move(stage));
    open_rows_ = rows;
  }
  last_linear_ = nullptr;
  open_rows_->add(std::move(op));
  for (const Tensor& written : writes) open_rows_->writes_output = open_rows_->writes_output || written.host;
  open_reads_.insert(open_reads_.end(), reads.begin(), reads.end());
  open_writes_.insert(open_writes_.end(), writes.begin(), writes.end());
}

void Lowering::add_stage(std::unique_ptr<Stage> stage) {
  out_.stages.push_back(std::move(stage));
  open_rows_ = nullptr;
  open_reads_.clear();
  open_writes_.clear();
  last_linear_ = nullptr;
}

void Lowering::add_linear_stage(std::unique_ptr<LinearStage> stage) {
  LinearStage* linear = stage.get();
  add_stage(std::move(stage));
  last_linear_ = linear;
}

// y = W x, then z = y + r in the same canonical group, y not read again: z is written at once. z may take the place of
// r but not of the rows the products still read.
bool Lowering::add_into_last_linear(const kvb_op& add) {
  if (last_linear_ == nullptr || last_linear_->parts().size() != 1 || add.group == 0) return false;
  LinearPart& part = last_linear_->parts().front();
  const uint32_t index = static_cast<uint32_t>(&add - program_.ops.data());
  const bool first = add.in[0] == part.value, second = add.in[1] == part.value;
  if (first == second || part.adds || index == 0) return false;
  const kvb_op& linear = program_.ops[index - 1];
  if (linear.group != add.group || (add.flags & KVB_OP_FLAG_GROUP_BEGIN) != 0) return false;
  for (uint32_t i = index + 1; i < program_.ops.size(); i++) {
    const kvb_op& later = program_.ops[i];
    if (std::find(std::begin(later.in), std::end(later.in), part.value) != std::end(later.in)) return false;
    if (later.out[0] == part.value || later.out[1] == part.value) break;
  }
  const Tensor residual = tensor(first ? add.in[1] : add.in[0]), y = tensor(add.out[0]);
  if (!disjoint(y, last_linear_->x()) || !row_compatible(y, residual)) return false;
  part.adds = true;
  part.residual = residual;
  part.y = y;
  part.value = add.out[0];
  last_linear_->writes_output = y.host;
  last_linear_ = nullptr;
  return true;
}

// One buffer for each operand type, as large as the largest product needs.
void Lowering::plan_operands() {
  uint64_t int8 = 0, bf16 = 0;
  for (const kvb_op& op : program_.ops) {
    if (op.code != KVB_OP_LINEAR) continue;
    const kvb_value& x = *program_.in(op, 0);
    const OperandType type = linear_operand(program_, op);
    uint64_t bytes = 0;
    overflow_ =
        overflow_ || !sdk::checked_mul(program_.max_rows(x), uint64_t{operand_row_bytes(type, x.width)}, &bytes);
    if (type == OperandType::kInt8) int8 = std::max(int8, bytes);
    if (type == OperandType::kBF16) bf16 = std::max(bf16, bytes);
  }
  int8_.offset = take(1, int8);
  bf16_.offset = take(1, bf16);
}

uint64_t Lowering::prepared(uint32_t value, OperandType type, size_t* row_bytes) {
  Prepared& buffer = type == OperandType::kInt8 ? int8_ : bf16_;
  const Tensor x = tensor(value);
  *row_bytes = operand_row_bytes(type, x.width);
  if (buffer.value != value) {
    add_row_op(std::make_unique<Prepare>(type, x, buffer.offset, *row_bytes), x.output_rows, {x}, {});
    buffer.value = value;
  }
  return buffer.offset;
}

void Lowering::forget_overwritten(const Tensor& written) {
  for (Prepared* buffer : {&int8_, &bf16_}) {
    if (buffer->value != KVB_NONE && !disjoint(tensor(buffer->value), written)) buffer->value = KVB_NONE;
  }
}

}  // namespace kvasir::cpu
