// SPDX-License-Identifier: MIT
//
// Context: one device's KV cache and the sequences in it. One thread at a time, which its handle sees to.
// Bookkeeping (tokens, pages) advances only after the device has succeeded, so a failed step leaves rows behind that
// nobody owns, and nothing else. step.cpp runs tokens, inspect.cpp reads rows back, trace.h reports intermediates.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kvasir/kvasir.h"
#include "runtime/context_plan.h"
#include "runtime/pages.h"

namespace kvasir {

class Context {
 public:
  static Status create(std::shared_ptr<Model> model, const kv_context_options& options, std::unique_ptr<Context>* out);

  void info(kv_context_info* out) const;  // strings live as long as the context
  uint32_t row_width() const { return model_->program().output_width; }
  uint32_t max_sequences() const { return plan_.max_sequences; }

  // Sequences.
  Status create_sequence(kv_sequence* out);
  Status fork(kv_sequence sequence, uint64_t length, kv_sequence* out);
  Status truncate(kv_sequence sequence, uint64_t length);
  Status release(kv_sequence sequence);
  Status length(kv_sequence sequence, uint64_t* out) const;
  Status tokens(kv_sequence sequence, uint64_t first, size_t count, int32_t* out) const;

  // One input of a step, copied in from the public struct.
  struct Input {
    kv_sequence sequence = 0;
    const int32_t* tokens = nullptr;  // [count], or null: all are rows
    const float* rows = nullptr;      // [number of rows][dim]
    uint64_t count = 0;
  };
  struct Result {
    Status status;
    const float* rows = nullptr;
    uint64_t length = 0;
    uint64_t computed = 0;
  };
  // Appends the inputs. The returned status is that of the whole call; when it is ok, results[i].status is each input's
  // own. `results` is [inputs].
  Status step(std::span<const Input> inputs, const kv_step_options& options, std::span<Result> results);

  // Cached rows as f32; `floats` is the capacity of `out`.
  Status read_rows(kv_sequence sequence, uint32_t layer, uint32_t what, uint64_t first, uint64_t count, float* out,
                   uint64_t floats);

  Status set_trace(kv_trace_fn trace, void* user);

 private:
  friend class StepRun;
  friend class TraceRelay;

  struct Sequence {
    std::vector<int32_t> tokens;  // KV_TOKEN_ROW for embedding rows
    std::vector<uint32_t> pages;  // page i holds positions [i * page_tokens, ...)
  };
  struct Program {
    uint32_t max_tokens = 0;
    uint32_t max_outputs = 0;
    Owned<kvb_program> handle{nullptr, nullptr};
  };

  Context(std::shared_ptr<Model> model, ContextPlan plan);
  const kvb_api& api() const { return plan_.device->api(); }
  Status compile(const Bucket& bucket, uint32_t flags, Program* out) const;
  const Program& program_for(uint32_t tokens) const;

  Status find(kv_sequence id, Sequence** out);
  Status find(kv_sequence id, const Sequence** out) const;
  Status alive() const;         // KV_DEVICE_LOST after the device was lost
  Status noted(Status status);  // remembers a lost device

  // At least `free` free pages, growing the device's cache if needed.
  Status ensure_free_pages(uint64_t free);
  void release_page(uint32_t page) noexcept;
  void poison(uint32_t page) noexcept;  // fills it with NaN; for tests
  // Rows of a page are those of its longest user; called after a user got shorter.
  void recount_rows(size_t page_index, uint32_t page) noexcept;

  std::shared_ptr<Model> model_;
  ContextPlan plan_;
  std::shared_ptr<const DeviceWeights> weights_;
  Owned<kvb_queue> queue_;
  Owned<kvb_cache> cache_;
  std::vector<Program> programs_;  // by size
  Program traced_;
  HostBlock output_;  // [max_sequences][row_width]

  Pages pages_;
  std::map<kv_sequence, Sequence> sequences_;
  kv_sequence next_id_ = KV_DEFAULT_SEQUENCE;
  uint64_t tokens_computed_ = 0;
  uint64_t projections_avoided_ = 0;
  bool lost_ = false;

  kv_trace_fn trace_ = nullptr;
  void* trace_user_ = nullptr;
};

}  // namespace kvasir
