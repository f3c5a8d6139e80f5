// SPDX-License-Identifier: MIT
//
// ROPE, and the tables of cos and sin it reads.
#include <algorithm>
#include <cmath>

#include "lowering.h"
#include "ops/rope_tables.h"

namespace kvasir::cpu {
namespace {

class Rope final : public RowOp {
 public:
  Rope(const Tensor& x, const Tensor& y, uint32_t heads, uint32_t head_dim, const kvb_rope& rope,
       const RopeTable& table)
      : x_(x),
        y_(y),
        heads_(heads),
        head_dim_(head_dim),
        first_(rope.first),
        pairing_(static_cast<RopePairing>(rope.pairing)),
        table_(table) {}

  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    for (uint32_t t = first; t < end; t++) {
      const size_t entry = size_t{t} * table_.pairs;
      view.kernels().rope(x_.row(view, t), view.at<float>(table_.cos) + entry, view.at<float>(table_.sin) + entry,
                          heads_, head_dim_, first_, table_.pairs, pairing_, y_.row(view, t));
    }
  }

 private:
  Tensor x_, y_;
  uint32_t heads_, head_dim_, first_;
  RopePairing pairing_;
  RopeTable table_;
};

}  // namespace

RopeTable RopeTables::table(Lowering& lowering, const kvb_rope& rope) {
  const double* frequency = sdk::rope_frequencies(rope);
  for (const Set& set : sets_) {
    if (set.magnitude == rope.magnitude &&
        std::equal(set.frequency.begin(), set.frequency.end(), frequency, frequency + rope.pairs))
      return set.table;
  }
  const uint64_t rows = lowering.program().desc.max_tokens, row_bytes = uint64_t{rope.pairs} * sizeof(float);
  const uint64_t cos = lowering.take(rows, row_bytes), sin = lowering.take(rows, row_bytes);
  sets_.push_back({{cos, sin, rope.pairs}, rope.magnitude, {frequency, frequency + rope.pairs}});
  return sets_.back().table;
}

void RopeTables::run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const {
  for (const Set& set : sets_) {
    const uint32_t pairs = set.table.pairs;
    const double magnitude = static_cast<double>(set.magnitude);
    for (uint32_t t = first; t < end; t++) {
      float* cos = view.at<float>(set.table.cos) + size_t{t} * pairs;
      float* sin = view.at<float>(set.table.sin) + size_t{t} * pairs;
      for (uint32_t i = 0; i < pairs; i++) {
        const double angle = view.step->positions[t] * set.frequency[i];
        cos[i] = static_cast<float>(magnitude * std::cos(angle));
        sin[i] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  }
}

kv_status lower_rope(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const kvb_rope& rope = lowering.program().rope(op);
  const Tensor x = lowering.tensor(op.in[0]), y = lowering.tensor(op.out[0]);
  const RopeTable table = lowering.ropes().table(lowering, rope);
  lowering.add_row_op(std::make_unique<Rope>(x, y, op.param[0], op.param[1], rope, table), false, {x}, {y});
  return KV_OK;
}

}  // namespace kvasir::cpu
