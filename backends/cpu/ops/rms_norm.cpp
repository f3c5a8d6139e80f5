// SPDX-License-Identifier: MIT
//
// RMS_NORM of whole rows or of each head.
#include "lowering.h"
#include "sdk/walk.h"

namespace kvasir::cpu {
namespace {

class RmsNorm final : public RowOp {
 public:
  RmsNorm(const Tensor& x, uint32_t weight, float eps, uint32_t group, const Tensor& y)
      : x_(x), y_(y), weight_(weight), eps_(eps), group_(group) {}

  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    const float* w = weight_ == KVB_NONE ? nullptr : view.weights[weight_]->vector();
    view.kernels().rms_norm(x_.row(view, first), x_.width, w, eps_, end - first, x_.width, group_, y_.row(view, first),
                            y_.width);
  }

 private:
  Tensor x_, y_;
  uint32_t weight_;
  float eps_;
  uint32_t group_;
};

}  // namespace

kv_status lower_rms_norm(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor x = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  const uint32_t weight = op.in[1] == KVB_NONE ? KVB_NONE : lowering.weight_index(op.in[1]);
  const uint32_t group = op.param[1] == 0 ? x.width : op.param[1];
  lowering.add_row_op(std::make_unique<RmsNorm>(x, weight, sdk::float_param(op, 0), group, y), x.output_rows, {x}, {y});
  return KV_OK;
}

}  // namespace kvasir::cpu
