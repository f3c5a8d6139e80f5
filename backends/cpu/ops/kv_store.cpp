// SPDX-License-Identifier: MIT
//
// KV_STORE: keys and values of the step's tokens, rounded to the cache's types, into their cells.
#include "cache_cells.h"
#include "lowering.h"

namespace kvasir::cpu {
namespace {

class KvStore final : public RowOp {
 public:
  KvStore(const Tensor& k, const Tensor& v, const GroupLayout& group, uint32_t group_index, uint32_t slot)
      : k_(k), v_(v), group_(group), group_index_(group_index), slot_(slot) {}

  void run(const StepView& view, uint32_t first, uint32_t end, uint32_t) const override {
    const kvb_step& step = *view.step;
    const kvb_page_table& table = step.tables[group_index_];
    const uint32_t page_tokens = group_.keys.page_tokens;
    for (uint32_t t = first; t < end; t++) {
      const uint32_t* pages = table.pages + size_t{step.sequence_of[t]} * table.pages_per_sequence;
      const uint32_t position = step.positions[t];
      std::byte* page = view.cache->page(group_index_, pages[position / page_tokens]);
      store_row(view, page, position % page_tokens, k_.row(view, t), v_.row(view, t));
    }
  }

 private:
  void store_row(const StepView& view, std::byte* page, uint32_t row, const float* k, const float* v) const {
    const SideLayout &keys = group_.keys, &values = group_.values;
    const auto encode = view.device->attention.encode;
    for (uint32_t h = 0; h < group_.kv_heads; h++) {
      EncodedHead head;
      std::byte* area = group_.head(page, slot_, h);
      encode(keys.type, k + size_t{h} * keys.dim, keys.dim, keys.padded, head.codes, head.scales);
      store_key(keys, area, row, head);
      encode(values.type, v + size_t{h} * values.dim, values.dim, values.padded, head.codes, head.scales);
      store_value(values, area + keys.bytes, row, head);
    }
  }

  Tensor k_, v_;
  GroupLayout group_;
  uint32_t group_index_, slot_;
};

}  // namespace

kv_status lower_kv_store(Lowering& lowering, const kvb_op& op, uint32_t, kv_error*) {
  const uint32_t layer = op.param[0];
  const Tensor k = lowering.tensor(op.in[0]), v = lowering.tensor(op.in[1]);
  lowering.add_row_op(std::make_unique<KvStore>(k, v, lowering.group(layer), lowering.cache().layer_group[layer],
                                                lowering.cache().layer_slot[layer]),
                      false, {k, v}, {});
  return KV_OK;
}

}  // namespace kvasir::cpu
