// SPDX-License-Identifier: MIT
//
// SELECT_ROWS: the token rows the host wants an output for.
#include <cstring>

#include "lowering.h"

namespace kvasir::cpu {
namespace {

class SelectRows final : public RowOp {
 public:
  SelectRows(const Tensor& x, const Tensor& y) : x_(x), y_(y) {}
  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    for (uint32_t o = first; o < end; o++)
      std::memcpy(y_.row(view, o), x_.row(view, view.step->output_rows[o]), y_.width * sizeof(float));
  }

 private:
  Tensor x_, y_;
};

}  // namespace

kv_status lower_select_rows(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const Tensor x = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  lowering.add_row_op(std::make_unique<SelectRows>(x, y), true, {x}, {y});
  return KV_OK;
}

}  // namespace kvasir::cpu
