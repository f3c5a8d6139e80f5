// SPDX-License-Identifier: MIT
//
// How the attention of a step is cut into work: tiles of a few tokens of one sequence, and, where there are fewer tiles
// than the crew needs (decoding at great depth), each split of a tile on its own. Depends on the number of members;
// results do not (see simd/attention.h).
#pragma once

#include <cstdint>

#include "kvasir/backend.h"
#include "simd/attention.h"
#include "step_view.h"

namespace kvasir::cpu {

constexpr uint32_t kTileRows = 32;  // query rows (tokens x heads) that are worked on together

struct AttentionTile {
  uint32_t first_token, tokens;
  uint32_t sequence;
  uint32_t first_split, splits;  // that any of its tokens sees
  uint32_t first_unit;           // 1 unit, or one for each split
  uint32_t slot;  // of the first token's first split among the partial results; KVB_NONE = joined at once
};

// Positions a token sees.
struct Visible {
  uint32_t lo, hi;
};

class AttentionPlan {
 public:
  struct Shape {
    uint32_t group;  // of the cache
    uint32_t window, page_tokens;
    uint32_t heads, kv_heads;
    uint32_t v_padded;
    bool operator==(const Shape&) const = default;
  };

  // For steps of up to max_tokens tokens in sequences of up to max_length.
  AttentionPlan(const Shape& shape, uint32_t max_tokens, uint32_t max_length);
  void place(uint64_t tiles_offset, uint64_t partials_offset);

  const Shape& shape() const { return shape_; }
  uint64_t slots() const { return slots_; }
  // Floats of a partial result: [heads] x (output [v_padded], maximum, sum, padding).
  uint64_t head_floats() const { return shape_.v_padded + kLanes; }
  uint64_t slot_floats() const { return shape_.heads * head_floats(); }

  // Query heads that share a kv head, and how they are cut when they are more than a tile's rows.
  uint32_t group_heads() const { return shape_.heads / shape_.kv_heads; }
  uint32_t item_heads() const { return group_heads() < kTileRows ? group_heads() : kTileRows; }
  uint32_t head_blocks() const { return (group_heads() + item_heads() - 1) / item_heads(); }
  uint32_t tile_tokens() const { return item_heads() > kTileRows / 2 ? 1 : kTileRows / item_heads(); }
  // Pieces of work of one unit.
  uint32_t head_items() const { return shape_.kv_heads * head_blocks(); }

  Visible visible(uint32_t position) const {
    const uint32_t hi = position + 1;
    return {shape_.window != 0 && hi > shape_.window ? hi - shape_.window : 0, hi};
  }

  // Cuts the step. Not thread-safe; what follows describes the step cut last.
  void cut(const StepView& view);
  uint32_t units() const { return units_; }
  bool has_partials() const { return slots_used_ > 0; }
  const AttentionTile& tile_of_unit(const StepView& view, uint32_t unit) const;
  const AttentionTile& tile_of_token(const StepView& view, uint32_t token) const;
  // Partial result of a head in a slot.
  float* partial(const StepView& view, uint64_t slot, uint32_t head) const {
    return view.at<float>(partials_offset_) + slot * slot_floats() + head * head_floats();
  }

 private:
  uint64_t add_run(const StepView& view, uint32_t first, uint32_t end, uint64_t total_work, bool measure);

  Shape shape_;
  uint64_t slots_ = 0;
  uint64_t tiles_offset_ = 0, partials_offset_ = 0;
  uint32_t tiles_ = 0, units_ = 0;
  uint64_t slots_used_ = 0;
};

}  // namespace kvasir::cpu
