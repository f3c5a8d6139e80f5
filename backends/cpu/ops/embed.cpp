// SPDX-License-Identifier: MIT
//
// EMBED: rows of the table (unpacked, scaled) or rows the host gives, plus learned positions.
#include <cstring>

#include "lowering.h"
#include "pack/pack.h"
#include "sdk/walk.h"

namespace kvasir::cpu {
namespace {

void weight_row(const Weight& weight, uint32_t row, float* out) {
  if (is_vector(weight.type, weight.depth, weight.rows)) {
    std::memcpy(out, weight.vector(), size_t{weight.width} * sizeof(float));
  } else {
    unpack_row(weight_type(weight.type), weight.matrix(), weight.width, row, out);
  }
}

class Embed final : public RowOp {
 public:
  Embed(uint32_t table, uint32_t positions, float scale, const Tensor& y)
      : table_(table), positions_(positions), scale_(scale), y_(y) {}

  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t member) const override {
    const kvb_step& step = *view.step;
    for (uint32_t t = first; t < end; t++) {
      float* y = y_.row(view, t);
      if (const int32_t token = step.tokens[t]; token < 0) {
        std::memcpy(y, step.embeddings + size_t{static_cast<uint32_t>(~token)} * y_.width, y_.width * sizeof(float));
      } else {
        weight_row(*view.weights[table_], static_cast<uint32_t>(token), y);
        if (scale_ != 1.0f) view.kernels().scale(y, scale_, y_.width, y);
      }
      if (positions_ == KVB_NONE) continue;
      float* position_row = view.member_scratch(member);
      weight_row(*view.weights[positions_], step.positions[t], position_row);
      view.kernels().add(y, position_row, y_.width, y);
    }
  }

 private:
  uint32_t table_, positions_;  // weights
  float scale_;
  Tensor y_;
};

}  // namespace

kv_status lower_embed(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const auto weight = [&](uint32_t value) { return value == KVB_NONE ? KVB_NONE : lowering.weight_index(value); };
  const Tensor y = lowering.tensor(op.out[0]);
  const float scale = op.param[0] == 0 ? 1.0f : sdk::float_param(op, 0);
  if (op.in[1] != KVB_NONE) lowering.need_member_scratch(y.width);
  lowering.add_row_op(std::make_unique<Embed>(weight(op.in[0]), weight(op.in[1]), scale, y), false, {}, {y});
  return KV_OK;
}

}  // namespace kvasir::cpu
