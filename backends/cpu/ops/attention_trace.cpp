// SPDX-License-Identifier: MIT
//
// SCORES and WEIGHTS of an ATTENTION for step.trace, computed after the op by the same kernels, row by row.
#include <cmath>

#include "ops/attention.h"
#include "simd/float_state.h"

namespace kvasir::cpu {
namespace {

class RowTrace {
 public:
  RowTrace(const StepView& view, const AttentionOp& op)
      : view_(view),
        op_(op),
        plan_(view.attention_plans[op.plan]),
        kernels_(view.device->attention),
        scratch_(op, view.member_scratch(0)),
        scores_(view.at<float>(op.trace_offset)),
        weights_(scores_ + op.max_length) {}

  void run(uint32_t token, uint32_t head) {
    compute(token, head);
    const Visible seen = plan_.visible(view_.step->positions[token]);
    report(KVB_TRACE_SCORES, token, head, seen, scores_);
    report(KVB_TRACE_WEIGHTS, token, head, seen, weights_);
  }

 private:
  void compute(uint32_t token, uint32_t head) {
    const FloatState state;
    const uint32_t dim = op_.group.keys.dim;
    const Visible seen = plan_.visible(view_.step->positions[token]);
    view_.kernels().scale(op_.q.row(view_, token) + size_t{head} * dim, op_.scale, dim, scratch_.q);
    float max = kNoMaximum, sum = 0;
    for_splits(seen, [&](uint32_t lo, uint32_t hi) {
      score(token, head, lo, hi, scores_ + (lo - seen.lo));
      float split_max = 0, split_sum = 0;
      softmax(lo, hi, scores_ + (lo - seen.lo), &split_max, &split_sum);
      kernels_.join(split_max, split_sum, nullptr, 0, &max, &sum, nullptr);
    });
    for_splits(seen, [&](uint32_t lo, uint32_t hi) {
      float split_max = 0, split_sum = 0;
      softmax(lo, hi, scores_ + (lo - seen.lo), &split_max, &split_sum);
      const float factor = std::exp(split_max - max) / sum;
      for (uint32_t p = lo; p < hi; p++) weights_[p - seen.lo] = scratch_.scores[p % kSplit] * factor;
    });
  }

  template <class Visit>
  static void for_splits(const Visible& seen, const Visit& visit) {
    for (uint32_t lo = seen.lo; lo < seen.hi;) {
      const uint32_t hi = std::min(seen.hi, lo / kSplit * kSplit + kSplit);
      visit(lo, hi);
      lo = hi;
    }
  }

  void score(uint32_t token, uint32_t head, uint32_t lo, uint32_t hi, float* out) {
    const uint32_t dim = op_.group.keys.dim;
    for_spans(view_, op_, view_.step->sequence_of[token], head / plan_.group_heads(), lo, hi,
              [&](const std::byte* cells, uint32_t row, uint32_t count, uint32_t offset) {
                kernels_.scores(op_.group.keys, {cells, row, count}, scratch_.q, dim, 1, out + offset);
              });
  }

  // Leaves the exponentials in the scratch, at the positions' places in their split.
  void softmax(uint32_t lo, uint32_t hi, const float* scores, float* max, float* sum) {
    std::copy_n(scores, hi - lo, scratch_.scores + lo % kSplit);
    kernels_.softmax(scratch_.scores, lo % kSplit, lo % kSplit + (hi - lo), max, sum);
  }

  void report(uint32_t what, uint32_t token, uint32_t head, const Visible& seen, const float* data) const {
    kvb_trace_record record{};
    record.struct_size = sizeof record;
    record.what = what;
    record.op = op_.op;
    record.token = token;
    record.head = head;
    record.rows = 1;
    record.width = seen.hi - seen.lo;
    record.first_position = seen.lo;
    record.data = data;
    view_.step->trace(view_.step->trace_user, &record);
  }

  const StepView& view_;
  const AttentionOp& op_;
  const AttentionPlan& plan_;
  const AttentionKernels& kernels_;
  AttentionScratch scratch_;
  float *scores_, *weights_;  // [max_length]
};

}  // namespace

void trace_attention(const StepView& view, const AttentionOp& op) {
  RowTrace row(view, op);
  for (uint32_t token = 0; token < view.step->token_count; token++) {
    for (uint32_t head = 0; head < op.heads; head++) row.run(token, head);
  }
}

}  // namespace kvasir::cpu
