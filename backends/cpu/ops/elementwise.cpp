// SPDX-License-Identifier: MIT
//
// ADD, GLU, ACTIVATION and SCALE: every element from the same element of the inputs.
#include "lowering.h"
#include "sdk/walk.h"

namespace kvasir::cpu {
namespace {

class Add final : public RowOp {
 public:
  Add(const Tensor& a, const Tensor& b, const Tensor& y) : a_(a), b_(b), y_(y) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    view.kernels().add(a_.row(view, first), b_.row(view, first), size_t{end - first} * y_.width, y_.row(view, first));
  }

 private:
  Tensor a_, b_, y_;
};

class Glu final : public RowOp {
 public:
  // Without `up` each row of `gate` holds the gate and then the other factor.
  Glu(Activation act, const Tensor& gate, const Tensor* up, const Tensor& y)
      : act_(act), gate_(gate), up_(up == nullptr ? gate : *up), joint_(up == nullptr), y_(y) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    for (uint32_t t = first; t < end; t++) {
      const float* up = up_.row(view, t) + (joint_ ? y_.width : 0);
      view.kernels().glu(act_, gate_.row(view, t), up, y_.width, y_.row(view, t));
    }
  }

 private:
  Activation act_;
  Tensor gate_, up_;
  bool joint_;
  Tensor y_;
};

class Activate final : public RowOp {
 public:
  Activate(Activation act, const Tensor& x, const Tensor& y) : act_(act), x_(x), y_(y) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    view.kernels().activate(act_, x_.row(view, first), size_t{end - first} * y_.width, y_.row(view, first));
  }

 private:
  Activation act_;
  Tensor x_, y_;
};

class Scale final : public RowOp {
 public:
  Scale(float factor, const Tensor& x, const Tensor& y) : factor_(factor), x_(x), y_(y) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    view.kernels().scale(x_.row(view, first), factor_, size_t{end - first} * y_.width, y_.row(view, first));
  }

 private:
  float factor_;
  Tensor x_, y_;
};

}  // namespace

kv_status lower_add(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor a = lowering.tensor(op.in[0]), b = lowering.tensor(op.in[1]), y = lowering.tensor(op.out[0]);
  if (lowering.add_into_last_linear(op)) return KV_OK;
  lowering.add_row_op(std::make_unique<Add>(a, b, y), y.output_rows, {a, b}, {y});
  return KV_OK;
}

kv_status lower_glu(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor gate = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  const auto act = static_cast<Activation>(op.param[0]);
  if (op.in[1] == KVB_NONE) {
    lowering.add_row_op(std::make_unique<Glu>(act, gate, nullptr, y), y.output_rows, {gate}, {y});
  } else {
    const Tensor up = lowering.tensor(op.in[1]);
    lowering.add_row_op(std::make_unique<Glu>(act, gate, &up, y), y.output_rows, {gate, up}, {y});
  }
  return KV_OK;
}

kv_status lower_activation(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor x = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  lowering.add_row_op(std::make_unique<Activate>(static_cast<Activation>(op.param[0]), x, y), y.output_rows, {x}, {y});
  return KV_OK;
}

kv_status lower_scale(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor x = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  lowering.add_row_op(std::make_unique<Scale>(sdk::float_param(op, 0), x, y), y.output_rows, {x}, {y});
  return KV_OK;
}

}  // namespace kvasir::cpu
