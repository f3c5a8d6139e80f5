// SPDX-License-Identifier: MIT
//
// What a program is compiled into: stages, run one after another by the crew. A stage is a number of chunks without
// order between them. Ops that compute each row from the same row of their inputs (RowOp) share a stage, so that a row
// goes through all of them while it is in the cache of its processor, and so that there are few barriers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kvasir/backend.h"
#include "step_view.h"

namespace kvasir::cpu {

class Stage {
 public:
  virtual ~Stage() = default;
  virtual uint32_t chunks(const StepView& view) const = 0;
  // Any chunk on any member; `member` says whose scratch memory may be used. Must not throw.
  virtual void run(const StepView& view, uint32_t chunk, uint32_t member) const = 0;

  // Traced programs: reports more than the op's result to step.trace, on the caller's thread.
  virtual void trace_details(const StepView&) const {}

  uint32_t traced_op = KVB_NONE;  // the op whose result is complete after this stage; set in traced programs
  bool writes_output = false;     // some rows handed to the host are written here
};

class RowOp {
 public:
  virtual ~RowOp() = default;
  // Rows [first, end).
  virtual void run(const StepView& view, uint32_t first, uint32_t end, uint32_t member) const = 0;
};

class RowStage final : public Stage {
 public:
  explicit RowStage(bool output_rows) : output_rows_(output_rows) {}

  bool output_rows() const { return output_rows_; }
  bool empty() const { return ops_.empty(); }
  void add(std::unique_ptr<RowOp> op) { ops_.push_back(std::move(op)); }

  uint32_t chunks(const StepView& view) const override {
    const uint32_t rows = view.rows(output_rows_), per_chunk = rows_per_chunk(view);
    return (rows + per_chunk - 1) / per_chunk;
  }
  void run(const StepView& view, uint32_t chunk, uint32_t member) const override {
    const uint32_t per_chunk = rows_per_chunk(view), first = chunk * per_chunk;
    const uint32_t end = std::min(first + per_chunk, view.rows(output_rows_));
    for (const std::unique_ptr<RowOp>& op : ops_) op->run(view, first, end, member);
  }

 private:
  static constexpr uint32_t kChunksPerMember = 4;

  uint32_t rows_per_chunk(const StepView& view) const {
    return view.rows(output_rows_) / (view.members * kChunksPerMember) + 1;
  }

  bool output_rows_;
  std::vector<std::unique_ptr<RowOp>> ops_;
};

}  // namespace kvasir::cpu
