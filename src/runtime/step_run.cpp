// SPDX-License-Identifier: MIT
//
// Admission, commit and rollback. The batches between them are in step_batch.cpp.
#include "runtime/step_run.h"

#include <algorithm>
#include <new>
#include <utility>

namespace kvasir {

namespace {

using ull = unsigned long long;

// Room for `size` elements; doubles, so that appending one at a time stays cheap.
template <class T>
void make_room(std::vector<T>* vector, size_t size) {
  if (vector->capacity() < size) vector->reserve(std::max(size, 2 * vector->capacity()));
}

}  // namespace

StepRun::StepRun(Context& context, std::span<const Context::Input> inputs, const kv_step_options& options,
                 std::span<Context::Result> results)
    : context_(context),
      inputs_(inputs),
      options_(options),
      results_(results),
      width_(context.row_width()),
      relay_(context.model_->program(), context.trace_, context.trace_user_) {}

StepRun::~StepRun() {
  for (const Append& append : appends_) {
    for (const uint32_t page : append.fresh) context_.release_page(page);
  }
}

Status StepRun::run() {
  KV_RETURN_IF_ERROR(check_call());
  appends_.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); i++) {
    results_[i].status = admit(i);
  }
  Status status;
  try {
    status = run_batches();
  } catch (const std::bad_alloc&) {  // finished batches may have to be kept
    status = Status::error(KV_OUT_OF_MEMORY, "the host has no memory left after %llu of %llu tokens", ull{done_},
                           ull{total_});
  }
  for (Append& append : appends_) {
    Context::Result& result = results_[append.input];
    if (append.status.ok()) {
      if (!status.ok()) result.status = Status::error(status.code(), "%s", status.message());
      finish(&append, status.ok() || options_.keep_chunks != 0);
    } else {
      result.status = std::move(append.status);
      finish(&append, false);
    }
    result.length = append.sequence->tokens.size();
    result.computed = append.done;
  }
  return status;
}

Status StepRun::check_call() const {
  KV_RETURN_IF_ERROR(context_.alive());
  KV_CHECK(!inputs_.empty(), KV_INVALID_ARGUMENT, "a step needs at least one input");
  KV_CHECK(options_.outputs <= KV_OUTPUT_ALL, KV_INVALID_ARGUMENT, "outputs %u is not known", options_.outputs);
  KV_CHECK(options_.outputs != KV_OUTPUT_ALL || options_.row != nullptr, KV_INVALID_ARGUMENT,
           "KV_OUTPUT_ALL needs a row callback");
  KV_CHECK(options_.keep_chunks <= 1, KV_INVALID_ARGUMENT, "keep_chunks is %u, not 0 or 1", options_.keep_chunks);
  KV_CHECK(options_.reserved == 0, KV_UNSUPPORTED, "the reserved field of the step options is %u, not 0",
           options_.reserved);
  if (options_.into != nullptr && options_.outputs == KV_OUTPUT_LAST) {
    KV_CHECK(options_.into_floats / width_ >= inputs_.size(), KV_BUFFER_TOO_SMALL,
             "%zu rows of %u floats do not fit a buffer of %llu floats", inputs_.size(), width_,
             ull{options_.into_floats});
  }
  return {};
}

Status StepRun::admit(size_t index) {
  const Context::Input& input = inputs_[index];
  Append append;
  append.input = index;
  KV_RETURN_IF_ERROR(context_.find(input.sequence, &append.sequence));
  for (const Append& other : appends_) {
    KV_CHECK(other.sequence != append.sequence, KV_INVALID_ARGUMENT, "sequence %llu appears twice in the step",
             ull{input.sequence});
  }
  append.start = append.sequence->tokens.size();
  results_[index].length = append.start;
  KV_CHECK(input.count != 0, KV_INVALID_ARGUMENT, "the input of sequence %llu has no tokens", ull{input.sequence});

  const uint32_t page_tokens = context_.plan_.page_tokens;
  const uint64_t tail_rows = append.start % page_tokens;
  append.copies_tail = tail_rows != 0 && context_.pages_.users(append.sequence->pages.back()) > 1;
  uint64_t new_pages = 0;
  KV_RETURN_IF_ERROR(check_capacity(append, input.count, &new_pages));
  KV_RETURN_IF_ERROR(check_tokens(input));

  // Everything that can fail comes first; taking pages cannot.
  KV_RETURN_IF_ERROR(context_.ensure_free_pages(new_pages));
  append.fresh.reserve(new_pages);
  make_room(&append.sequence->tokens, append.start + input.count);
  make_room(&append.sequence->pages, append.sequence->pages.size() + new_pages);
  for (uint64_t i = 0; i < new_pages; i++) append.fresh.push_back(context_.pages_.take());
  pending_rows_ += input.count + (append.copies_tail ? tail_rows : 0);
  total_ += input.count;
  appends_.push_back(std::move(append));
  return {};
}

// Before a token is looked at: a nonsense count must not make us read past the caller's array.
Status StepRun::check_capacity(const Append& append, uint64_t count, uint64_t* new_pages) const {
  const ContextPlan& plan = context_.plan_;
  const uint64_t held = context_.pages_.rows() + pending_rows_;
  const uint64_t copied = append.copies_tail ? append.start % plan.page_tokens : 0;
  const uint64_t available = plan.max_tokens - std::min(plan.max_tokens, held + copied);
  KV_CHECK(count <= available, KV_CONTEXT_FULL, "%llu tokens do not fit: %llu of %llu are available", ull{count},
           ull{available}, ull{plan.max_tokens});
  const uint64_t end = append.start + count;
  const uint64_t pages = (end + plan.page_tokens - 1) / plan.page_tokens;
  *new_pages = pages - append.sequence->pages.size() + (append.copies_tail ? 1 : 0);
  return {};
}

Status StepRun::check_tokens(const Context::Input& input) const {
  const Program& program = context_.model_->program();
  const uint32_t vocab = context_.model_->config().vocab;
  bool rows = input.tokens == nullptr;
  for (uint64_t i = 0; input.tokens != nullptr && i < input.count; i++) {
    const int32_t token = input.tokens[i];
    rows |= token == KV_TOKEN_ROW;
    if (token == KV_TOKEN_ROW) continue;
    KV_CHECK(program.takes_tokens, KV_INVALID_ARGUMENT,
             "token %d: the model has no embedding table and takes rows only", token);
    KV_CHECK(token >= 0 && static_cast<uint32_t>(token) < vocab, KV_INVALID_ARGUMENT,
             "token %d at index %llu of the input of sequence %llu is not in [0, %u)", token, ull{i},
             ull{input.sequence}, vocab);
  }
  KV_CHECK(!rows || input.rows != nullptr, KV_INVALID_ARGUMENT,
           "the input of sequence %llu gives neither token ids nor embedding rows", ull{input.sequence});
  return {};
}

void StepRun::finish(Append* append, bool keep) noexcept {
  Context::Sequence& sequence = *append->sequence;
  Pages& pages = context_.pages_;
  const uint32_t page_tokens = pages.page_tokens();
  const uint64_t kept = keep ? append->done : 0;
  append->done = kept;
  const uint64_t end = append->start + kept;

  size_t used = 0;  // fresh pages that become the sequence's
  if (kept != 0 && append->copies_tail) {
    const uint32_t shared = sequence.pages.back();
    const size_t index = sequence.pages.size() - 1;
    sequence.pages.back() = append->fresh[used++];
    context_.release_page(shared);
    context_.recount_rows(index, shared);
  }
  while (sequence.pages.size() * page_tokens < end) sequence.pages.push_back(append->fresh[used++]);
  for (size_t i = append->fresh.size(); i > used; i--) context_.release_page(append->fresh[i - 1]);
  append->fresh.clear();

  const Context::Input& input = inputs_[append->input];
  for (uint64_t i = 0; i < kept; i++)
    sequence.tokens.push_back(input.tokens != nullptr ? input.tokens[i] : KV_TOKEN_ROW);
  for (uint64_t index = append->start / page_tokens; index < sequence.pages.size() && kept != 0; index++) {
    context_.recount_rows(index, sequence.pages[index]);
  }
  context_.tokens_computed_ += kept;
  context_.projections_avoided_ += kept == 0 ? 0 : 3 * uint64_t{context_.model_->config().layers} * (end - kept);
}

Status Context::step(std::span<const Input> inputs, const kv_step_options& options, std::span<Result> results) {
  return StepRun(*this, inputs, options, results).run();
}

}  // namespace kvasir
