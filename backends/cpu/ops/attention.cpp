// SPDX-License-Identifier: MIT
//
// ATTENTION. A chunk is a tile of a few tokens and the heads of one kv head, over all splits the tile sees or over one
// of them; in the second case a further stage joins the splits. Both do the same operations on each row in one order.
#include "ops/attention.h"

#include "lowering.h"
#include "sdk/walk.h"

namespace kvasir::cpu {
namespace {

// One chunk's work.
class TileWork {
 public:
  TileWork(const StepView& view, const AttentionOp& op, const AttentionTile& tile, uint32_t kv_head,
           uint32_t first_head, uint32_t heads, float* scratch)
      : view_(view),
        op_(op),
        plan_(view.attention_plans[op.plan]),
        kernels_(view.device->attention),
        tile_(tile),
        kv_head_(kv_head),
        first_head_(first_head),
        heads_(heads),
        scratch_(op, scratch) {}

  void run_joined() {
    load_queries();
    const uint32_t rows = tile_.tokens * heads_, padded = op_.group.values.padded;
    std::fill_n(scratch_.running_max, rows, kNoMaximum);
    std::fill_n(scratch_.running_sum, rows, 0.0f);
    std::fill_n(scratch_.total, size_t{rows} * padded, 0.0f);
    for (uint32_t split = tile_.first_split; split < tile_.first_split + tile_.splits; split++) {
      run_split(split);
      for (uint32_t r = first_ * heads_; r < end_ * heads_; r++)
        kernels_.join(scratch_.max[r], scratch_.sum[r], scratch_.part + size_t{r} * padded, padded,
                      scratch_.running_max + r, scratch_.running_sum + r, scratch_.total + size_t{r} * padded);
    }
    for (uint32_t r = 0; r < rows; r++)
      kernels_.finish(scratch_.total + size_t{r} * padded, scratch_.running_sum[r], op_.group.values.dim, output(r));
  }

  void run_one(uint32_t split) {
    load_queries();
    run_split(split);
    const uint32_t padded = op_.group.values.padded;
    for (uint32_t r = first_ * heads_; r < end_ * heads_; r++) {
      const uint64_t slot = tile_.slot + uint64_t{r / heads_} * tile_.splits + (split - tile_.first_split);
      float* partial = plan_.partial(view_, slot, first_head_ + r % heads_);
      std::copy_n(scratch_.part + size_t{r} * padded, padded, partial);
      partial[padded] = scratch_.max[r];
      partial[padded + 1] = scratch_.sum[r];
    }
  }

 private:
  // Positions of a split, counted from its start.
  struct Range {
    uint32_t lo, hi;
  };

  float* output(uint32_t r) const {
    return op_.y.row(view_, tile_.first_token + r / heads_) + size_t{first_head_ + r % heads_} * op_.group.values.dim;
  }

  void load_queries() {
    const uint32_t dim = op_.group.keys.dim;
    for (uint32_t r = 0; r < tile_.tokens * heads_; r++) {
      const float* q = op_.q.row(view_, tile_.first_token + r / heads_) + size_t{first_head_ + r % heads_} * dim;
      view_.kernels().scale(q, op_.scale, dim, scratch_.q + size_t{r} * dim);
    }
  }

  Range range(uint32_t token, uint32_t split) const {
    const Visible visible = plan_.visible(view_.step->positions[tile_.first_token + token]);
    const uint64_t start = uint64_t{split} * kSplit, end = start + kSplit;
    const uint64_t lo = std::clamp<uint64_t>(visible.lo, start, end), hi = std::clamp<uint64_t>(visible.hi, start, end);
    return {static_cast<uint32_t>(lo - start), static_cast<uint32_t>(hi - start)};
  }

  // Tokens that see a part of the split are adjacent: their ranges only move forward.
  void run_split(uint32_t split) {
    split_start_ = split * kSplit;
    first_ = 0;
    while (first_ < tile_.tokens && empty(range(first_, split))) first_++;
    end_ = first_;
    while (end_ < tile_.tokens && !empty(range(end_, split))) {
      ranges_[end_] = range(end_, split);
      end_++;
    }
    if (first_ == end_) return;
    score();
    for (uint32_t r = first_ * heads_; r < end_ * heads_; r++) {
      const Range& seen = ranges_[r / heads_];
      kernels_.softmax(scratch_.scores + r * kScoreStride, seen.lo, seen.hi, scratch_.max + r, scratch_.sum + r);
    }
    const uint32_t padded = op_.group.values.padded;
    std::fill_n(scratch_.part + size_t{first_} * heads_ * padded, size_t{end_ - first_} * heads_ * padded, 0.0f);
    add_values();
  }

  static bool empty(const Range& range) { return range.lo >= range.hi; }

  // All rows against all positions that any of them sees; what a row does not see is left out later.
  void score() {
    const SideLayout& keys = op_.group.keys;
    const Range all{ranges_[first_].lo, ranges_[end_ - 1].hi};
    const uint32_t first_row = first_ * heads_, rows = (end_ - first_) * heads_;
    for_spans(view_, op_, tile_.sequence, kv_head_, split_start_ + all.lo, split_start_ + all.hi,
              [&](const std::byte* cells, uint32_t row, uint32_t count, uint32_t offset) {
                kernels_.scores(keys, {cells, row, count}, scratch_.q + size_t{first_row} * keys.dim, keys.dim, rows,
                                scratch_.scores + first_row * kScoreStride + all.lo + offset);
              });
  }

  // Positions all tokens see are done for all rows at once; those before and behind, token by token.
  void add_values() {
    const Range common{ranges_[end_ - 1].lo, ranges_[first_].hi};
    if (empty(common)) {
      for (uint32_t t = first_; t < end_; t++) add_range(t, t + 1, ranges_[t]);
      return;
    }
    for (uint32_t t = first_; t < end_; t++) add_range(t, t + 1, {ranges_[t].lo, common.lo});
    add_range(first_, end_, common);
    for (uint32_t t = first_; t < end_; t++) add_range(t, t + 1, {common.hi, ranges_[t].hi});
  }

  void add_range(uint32_t first_token, uint32_t end_token, const Range& range) {
    if (empty(range)) return;
    const SideLayout& values = op_.group.values;
    const uint32_t first_row = first_token * heads_, rows = (end_token - first_token) * heads_;
    for_spans(view_, op_, tile_.sequence, kv_head_, split_start_ + range.lo, split_start_ + range.hi,
              [&](const std::byte* cells, uint32_t row, uint32_t count, uint32_t offset) {
                kernels_.values(values, {cells + op_.group.keys.bytes, row, count},
                                scratch_.scores + first_row * kScoreStride + range.lo + offset, rows,
                                scratch_.part + size_t{first_row} * values.padded, values.padded);
              });
  }

  const StepView& view_;
  const AttentionOp& op_;
  const AttentionPlan& plan_;
  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  const uint32_t kv_head_, first_head_, heads_;
  AttentionScratch scratch_;
  uint32_t split_start_ = 0;
  uint32_t first_ = 0, end_ = 0;  // tokens of the tile that see the split
  Range ranges_[kTileRows];
};

class AttentionStage final : public Stage {
 public:
  explicit AttentionStage(const AttentionOp& op) : op_(op) {}

  uint32_t chunks(const StepView& view) const override {
    const AttentionPlan& plan = view.attention_plans[op_.plan];
    return plan.units() * plan.head_items();
  }
  void run(const StepView& view, uint32_t chunk, uint32_t member) const override {
    const AttentionPlan& plan = view.attention_plans[op_.plan];
    const uint32_t unit = chunk / plan.head_items(), item = chunk % plan.head_items();
    const uint32_t kv_head = item / plan.head_blocks(), skipped = item % plan.head_blocks() * plan.item_heads();
    const AttentionTile& tile = plan.tile_of_unit(view, unit);
    TileWork work(view, op_, tile, kv_head, kv_head * plan.group_heads() + skipped,
                  std::min(plan.item_heads(), plan.group_heads() - skipped), view.member_scratch(member));
    if (tile.slot == KVB_NONE) {
      work.run_joined();
    } else {
      work.run_one(tile.first_split + (unit - tile.first_unit));
    }
  }

 private:
  AttentionOp op_;
};

// Joins the splits of tokens that were cut into them: a chunk is one token and the heads of one kv head.
class JoinStage final : public Stage {
 public:
  explicit JoinStage(const AttentionOp& op) : op_(op) {}

  uint32_t chunks(const StepView& view) const override {
    return view.attention_plans[op_.plan].has_partials() ? view.step->token_count * op_.group.kv_heads : 0;
  }
  void run(const StepView& view, uint32_t chunk, uint32_t member) const override {
    const AttentionPlan& plan = view.attention_plans[op_.plan];
    const uint32_t token = chunk / op_.group.kv_heads, kv_head = chunk % op_.group.kv_heads;
    const AttentionTile& tile = plan.tile_of_token(view, token);
    if (tile.slot == KVB_NONE) return;
    const AttentionScratch scratch(op_, view.member_scratch(member));
    for (uint32_t h = kv_head * plan.group_heads(); h < (kv_head + 1) * plan.group_heads(); h++)
      join_head(view, plan, tile, token, h, scratch);
  }
  void trace_details(const StepView& view) const override { trace_attention(view, op_); }

 private:
  void join_head(const StepView& view, const AttentionPlan& plan, const AttentionTile& tile, uint32_t token,
                 uint32_t head, const AttentionScratch& scratch) const {
    const AttentionKernels& kernels = view.device->attention;
    const uint32_t padded = op_.group.values.padded;
    const Visible seen = plan.visible(view.step->positions[token]);
    const uint64_t slot = tile.slot + uint64_t{token - tile.first_token} * tile.splits;
    float max = kNoMaximum, sum = 0;
    std::fill_n(scratch.total, padded, 0.0f);
    for (uint32_t split = seen.lo / kSplit; split <= (seen.hi - 1) / kSplit; split++) {
      const float* partial = plan.partial(view, slot + (split - tile.first_split), head);
      kernels.join(partial[padded], partial[padded + 1], partial, padded, &max, &sum, scratch.total);
    }
    kernels.finish(scratch.total, sum, op_.group.values.dim,
                   op_.y.row(view, token) + size_t{head} * op_.group.values.dim);
  }

  AttentionOp op_;
};

kv_status check_features(const kvb_op& op, uint32_t index, kv_error* error) {
  KV_REQUIRE(op.in[1] == KVB_NONE, error, KV_UNSUPPORTED,
             "op %u (ATTENTION) has sinks, which the cpu backend does not run", index);
  KV_REQUIRE(op.in[2] == KVB_NONE, error, KV_UNSUPPORTED,
             "op %u (ATTENTION) has ALiBi slopes, which the cpu backend does not run", index);
  KV_REQUIRE(sdk::float_param(op, 3) == 0, error, KV_UNSUPPORTED,
             "op %u (ATTENTION) has a soft-cap, which the cpu backend does not run", index);
  return KV_OK;
}

}  // namespace

kv_status lower_attention(Lowering& lowering, const kvb_op& op, uint32_t index, kv_error* error) {
  KV_TRY(check_features(op, index, error));
  const kvb_program_desc& desc = lowering.program().desc;
  const uint32_t layer = op.param[0];
  const kvb_cache_group& geometry = lowering.cache().group_of(layer);
  AttentionOp shared{};
  shared.op = index;
  shared.group = lowering.group(layer);
  shared.group_index = lowering.cache().layer_group[layer];
  shared.slot = lowering.cache().layer_slot[layer];
  shared.heads = op.param[1];
  shared.scale = sdk::float_param(op, 2);
  shared.q = lowering.tensor(op.in[0]);
  shared.y = lowering.tensor(op.out[0]);
  shared.max_length = desc.max_length;
  shared.trace_offset = lowering.trace_offset();
  shared.plan = lowering.add_attention_plan(AttentionPlan({shared.group_index, geometry.window, geometry.page_tokens,
                                                           shared.heads, geometry.kv_heads, shared.group.values.padded},
                                                          desc.max_tokens, desc.max_length));
  lowering.need_member_scratch(shared.scratch_floats());
  auto stage = std::make_unique<AttentionStage>(shared);
  auto join = std::make_unique<JoinStage>(shared);
  stage->writes_output = join->writes_output = shared.y.host;
  lowering.add_stage(std::move(stage));
  lowering.add_stage(std::move(join));
  return KV_OK;
}

}  // namespace kvasir::cpu
