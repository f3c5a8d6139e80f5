// SPDX-License-Identifier: MIT
//
// Rows that change place and position: cells are carried as they are, then keys are turned by the difference of the
// positions and rounded to the cache's type again.
#include <algorithm>

#include "cache.h"
#include "cache_cells.h"
#include "cache_formats.h"
#include "sdk/errors.h"
#include "sdk/fpstate.h"
#include "sdk/rope.h"
#include "sdk/verify.h"

namespace kvasir::cpu {
namespace {

struct Moves {
  const kvb_cache_move* items;
  uint32_t count;

  uint64_t rows() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += items[i].count;
    return sum;
  }
};

// One side of one head in the pages of a group.
struct HeadArea {
  const Cache& cache;
  const GroupLayout& layout;
  uint32_t group, slot, head;
  bool keys;

  const SideLayout& side() const { return keys ? layout.keys : layout.values; }
  std::byte* in_page(uint32_t page) const {
    std::byte* area = layout.head(cache.page(group, page), slot, head);
    return keys ? area : area + layout.keys.bytes;
  }
  void load(uint32_t page, uint32_t row, EncodedHead& out) const {
    keys ? load_key(side(), in_page(page), row, out) : load_value(side(), in_page(page), row, out);
  }
  void store(uint32_t page, uint32_t row, EncodedHead& in) const {
    keys ? store_key(side(), in_page(page), row, in) : store_value(side(), in_page(page), row, in);
  }
};

void turn(const Device& device, const SideLayout& side, const kvb_rope& rope, int32_t delta, EncodedHead& head) {
  float x[kMaxHeadDim];
  to_f32(side, head, reinterpret_cast<std::byte*>(x));
  sdk::turn_head(rope, delta, x);
  device.attention.encode(side.type, x, side.dim, side.padded, head.codes, head.scales);
}

// All rows are read into `stage` before the first is written.
void move_head(const HeadArea& area, const Moves& moves, const kvb_rope* rope, std::byte* stage) {
  const SideLayout& side = area.side();
  const size_t bytes = stored_head_bytes(side);
  EncodedHead head;
  std::byte* staged = stage;
  for (uint32_t i = 0; i < moves.count; i++) {
    const kvb_cache_move& move = moves.items[i];
    for (uint32_t row = 0; row < move.count; row++, staged += bytes) {
      area.load(move.from_page, move.from_row + row, head);
      to_stored(side, head, staged);
    }
  }
  staged = stage;
  for (uint32_t i = 0; i < moves.count; i++) {
    const kvb_cache_move& move = moves.items[i];
    for (uint32_t row = 0; row < move.count; row++, staged += bytes) {
      from_stored(side, staged, head);
      if (rope != nullptr && move.delta != 0) turn(area.cache.device(), side, *rope, move.delta, head);
      area.store(move.to_page, move.to_row + row, head);
    }
  }
}

}  // namespace

kv_status Cache::check_moves(uint32_t group, const kvb_cache_move* moves, uint32_t count, const kvb_rope* const* rope,
                             kv_error* error) const {
  KV_REQUIRE(group < group_count(), error, KV_INVALID_ARGUMENT, "cache group %u of %u", group, group_count());
  KV_REQUIRE(count == 0 || moves != nullptr, error, KV_INVALID_ARGUMENT, "moves is NULL");
  for (uint32_t i = 0; i < count; i++) {
    KV_TRY(check_rows(group, moves[i].from_page, moves[i].from_row, moves[i].count, error));
    KV_TRY(check_rows(group, moves[i].to_page, moves[i].to_row, moves[i].count, error));
  }
  for (uint32_t slot = 0; rope != nullptr && slot < groups_[group].layers; slot++) {
    const char* fault = rope[slot] == nullptr ? nullptr : sdk::rope_fault(*rope[slot], layout_.groups[group].k_dim);
    KV_REQUIRE(fault == nullptr, error, KV_INVALID_ARGUMENT, "rotary parameters of layer %u of the group: %s", slot,
               fault);
  }
  return KV_OK;
}

kv_status Cache::move_rows(uint32_t group, const kvb_cache_move* moves, uint32_t count, const kvb_rope* const* rope,
                           kv_error* error) {
  KV_TRY(check_moves(group, moves, count, rope, error));
  const sdk::FloatingPointScope scope;
  const GroupLayout& layout = groups_[group];
  const Moves all{moves, count};
  const uint64_t widest = std::max(stored_head_bytes(layout.keys), stored_head_bytes(layout.values));
  uint64_t stage_bytes = 0;
  KV_REQUIRE(sdk::checked_mul(all.rows(), widest, &stage_bytes), error, KV_OUT_OF_MEMORY,
             "%llu rows are too many to move at once", static_cast<unsigned long long>(all.rows()));
  sdk::HostBlock stage;
  KV_TRY(sdk::HostBlock::allocate(device_.memory, stage_bytes, "rows to move", &stage, error));
  for (uint32_t slot = 0; slot < layout.layers; slot++) {
    for (uint32_t head = 0; head < layout.kv_heads; head++) {
      move_head({*this, layout, group, slot, head, true}, all, rope == nullptr ? nullptr : rope[slot], stage.bytes());
      move_head({*this, layout, group, slot, head, false}, all, nullptr, stage.bytes());
    }
  }
  return KV_OK;
}

}  // namespace kvasir::cpu
