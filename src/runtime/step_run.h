// SPDX-License-Identifier: MIT
//
// StepRun: one call of kv_step. Admits each input or refuses it, takes the pages it needs, runs internal batches on the
// device, and then, inputs that succeeded are committed and the others rolled back. Until the commit nothing of the
// context changes but free pages taken.
#pragma once

#include <span>
#include <vector>

#include "runtime/context.h"
#include "runtime/trace.h"

namespace kvasir {

class StepRun {
 public:
  StepRun(Context& context, std::span<const Context::Input> inputs, const kv_step_options& options,
          std::span<Context::Result> results);

  // An exception on the way (no memory, a callback that throws) rolls back like a failure.
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  Status run();

 private:
  // An admitted input on its way.
  struct Append {
    size_t input = 0;
    Context::Sequence* sequence = nullptr;
    uint64_t start = 0;           // tokens held before
    uint64_t done = 0;            // appended so far, of inputs_[input].count
    uint64_t rows_done = 0;       // embedding rows used so far
    bool copies_tail = false;     // fresh[0] replaces the sequence's shared last page
    std::vector<uint32_t> fresh;  // pages taken for this input; none once it is finished
    Status status;
  };

  // The tokens of one internal batch that belong to one input.
  struct Part {
    Append* append;
    uint64_t count;
  };

  Status check_call() const;
  Status admit(size_t input);
  Status check_tokens(const Context::Input& input) const;
  Status check_capacity(const Append& append, uint64_t count, uint64_t* new_pages) const;
  Status copy_tail(const Append& append);
  Status run_batches();
  std::vector<Part> next_batch();
  Status run_batch(const std::vector<Part>& parts);
  void add_tokens(const Part& part, uint32_t sequence);
  void fill_page_tables(const std::vector<Part>& parts);
  uint32_t page(const Append& append, uint64_t index) const;
  Status submit(uint32_t sequences, float* out);
  void take_rows(const std::vector<Part>& parts, float* out);
  void check_row(Append* append, const float* row, uint64_t position);
  void finish(Append* append, bool keep) noexcept;

  Context& context_;
  const std::span<const Context::Input> inputs_;
  const kv_step_options& options_;
  const std::span<Context::Result> results_;
  const uint32_t width_;
  std::vector<Append> appends_;
  uint64_t pending_rows_ = 0;  // cache rows promised to admitted inputs
  uint64_t total_ = 0;         // admitted tokens
  uint64_t done_ = 0;
  uint64_t output_rows_ = 0;  // rows kept in context_.output_ so far

  // The step block of the current batch.
  std::vector<int32_t> tokens_;
  std::vector<float> embeddings_;
  std::vector<uint32_t> positions_, sequence_of_, lengths_, pages_, output_rows_of_;
  uint32_t pages_per_sequence_ = 0;
  std::vector<TraceToken> trace_tokens_;
  TraceRelay relay_;
};

}  // namespace kvasir
