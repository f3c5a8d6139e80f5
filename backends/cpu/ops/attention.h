// SPDX-License-Identifier: MIT
//
// What the stages of ATTENTION share: the op's shape, a walk over the cells of a range of positions, and the layout of
// a member's scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cache.h"
#include "ops/attention_plan.h"
#include "stage.h"

namespace kvasir::cpu {

struct AttentionOp {
  uint32_t op;    // index in the program
  uint32_t plan;  // index into the plans
  uint32_t group_index, slot;
  GroupLayout group;
  uint32_t heads;
  float scale;
  Tensor q, y;
  uint32_t max_length;
  uint64_t trace_offset;  // traced programs: two rows of max_length scores

  // Floats of scratch a member needs: queries, scores, outputs of a split, running outputs, and the rows' sums.
  uint64_t scratch_floats() const {
    return kTileRows * (uint64_t{group.keys.dim} + kScoreStride + 2 * uint64_t{group.values.padded} + 4);
  }
};

// A member's scratch, divided.
struct AttentionScratch {
  AttentionScratch(const AttentionOp& op, float* memory)
      : scores(memory),
        part(scores + kTileRows * kScoreStride),
        total(part + kTileRows * op.group.values.padded),
        max(total + kTileRows * op.group.values.padded),
        sum(max + kTileRows),
        running_max(sum + kTileRows),
        running_sum(running_max + kTileRows),
        q(running_sum + kTileRows) {}

  float* scores;                     // [kTileRows, kScoreStride]
  float* part;                       // [kTileRows, v_padded]
  float* total;                      // [kTileRows, v_padded]
  float *max, *sum;                  // [kTileRows] of the split
  float *running_max, *running_sum;  // [kTileRows]
  float* q;                          // [kTileRows, k_dim], times the scale
};

// Calls visit(head's cells, span of rows, offset from `lo`) for positions [lo, hi) of a sequence, page by page.
template <class Visit>
void for_spans(const StepView& view, const AttentionOp& op, uint32_t sequence, uint32_t kv_head, uint32_t lo,
               uint32_t hi, const Visit& visit) {
  const kvb_page_table& table = view.step->tables[op.group_index];
  const uint32_t* pages = table.pages + size_t{sequence} * table.pages_per_sequence;
  const uint32_t page_tokens = op.group.keys.page_tokens;
  for (uint32_t position = lo; position < hi;) {
    const uint32_t row = position % page_tokens, count = std::min(page_tokens - row, hi - position);
    std::byte* page = view.cache->page(op.group_index, pages[position / page_tokens]);
    visit(op.group.head(page, op.slot, kv_head), row, count, position - lo);
    position += count;
  }
}

// SCORES and WEIGHTS of every (token, head).
void trace_attention(const StepView& view, const AttentionOp& op);

}  // namespace kvasir::cpu
