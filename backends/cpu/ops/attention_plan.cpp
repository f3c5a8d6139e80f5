// SPDX-License-Identifier: MIT
//
// Cutting a step's attention into tiles and units.
#include "ops/attention_plan.h"

#include <algorithm>

namespace kvasir::cpu {
namespace {

// Memory for partial results: enough for some tokens at the greatest length, within a bound.
constexpr uint64_t kPartialTokens = 8;
constexpr uint64_t kPartialBytes = uint64_t{64} << 20;

// Pieces of work a member should have to choose from.
constexpr uint64_t kItemsPerMember = 4;

}  // namespace

AttentionPlan::AttentionPlan(const Shape& shape, uint32_t max_tokens, uint32_t max_length) : shape_(shape) {
  const uint64_t length =
      shape.window == 0 ? max_length : std::min<uint64_t>(max_length, uint64_t{shape.window} + kSplit);
  const uint64_t splits = (length + kSplit - 1) / kSplit + 1;
  const uint64_t wanted = std::min<uint64_t>(max_tokens, kPartialTokens) * splits;
  slots_ = std::min(wanted, kPartialBytes / (slot_floats() * sizeof(float)));
}

void AttentionPlan::place(uint64_t tiles_offset, uint64_t partials_offset) {
  tiles_offset_ = tiles_offset;
  partials_offset_ = partials_offset;
}

void AttentionPlan::cut(const StepView& view) {
  tiles_ = 0;
  units_ = 0;
  slots_used_ = 0;
  const kvb_step& step = *view.step;
  uint64_t work = 0;
  for (const bool measure : {true, false}) {
    for (uint32_t first = 0, end = 0; first < step.token_count; first = end) {
      while (end < step.token_count && step.sequence_of[end] == step.sequence_of[first]) end++;
      work += add_run(view, first, end, work, measure);
    }
  }
}

// The tiles of one sequence's tokens [first, end). Returns their work in (tokens x splits); `measure`: does only that.
uint64_t AttentionPlan::add_run(const StepView& view, uint32_t first, uint32_t end, uint64_t total_work, bool measure) {
  const kvb_step& step = *view.step;
  AttentionTile* tiles = view.at<AttentionTile>(tiles_offset_);
  uint64_t run_work = 0;
  for (uint32_t token = first; token < end; token += tile_tokens()) {
    AttentionTile tile{token, std::min(tile_tokens(), end - token), step.sequence_of[token], 0, 0, units_, KVB_NONE};
    tile.first_split = visible(step.positions[token]).lo / kSplit;
    tile.splits = step.positions[token + tile.tokens - 1] / kSplit - tile.first_split + 1;
    const uint64_t work = uint64_t{tile.tokens} * tile.splits;
    if (measure) {
      run_work += work;
      continue;
    }
    // On its own a tile would keep one member busy for more than its fair share of the whole.
    const bool large = work * kItemsPerMember * view.members > total_work * head_items();
    if (large && tile.splits > 1 && view.members > 1 && work <= slots_ - slots_used_) {
      tile.slot = static_cast<uint32_t>(slots_used_);
      slots_used_ += work;
    }
    units_ += tile.slot == KVB_NONE ? 1 : tile.splits;
    tiles[tiles_++] = tile;
  }
  return run_work;
}

const AttentionTile& AttentionPlan::tile_of_unit(const StepView& view, uint32_t unit) const {
  const AttentionTile* tiles = view.at<AttentionTile>(tiles_offset_);
  return *(std::upper_bound(tiles, tiles + tiles_, unit,
                            [](uint32_t value, const AttentionTile& tile) { return value < tile.first_unit; }) -
           1);
}

const AttentionTile& AttentionPlan::tile_of_token(const StepView& view, uint32_t token) const {
  const AttentionTile* tiles = view.at<AttentionTile>(tiles_offset_);
  return *(std::upper_bound(tiles, tiles + tiles_, token,
                            [](uint32_t value, const AttentionTile& tile) { return value < tile.first_token; }) -
           1);
}

}  // namespace kvasir::cpu
