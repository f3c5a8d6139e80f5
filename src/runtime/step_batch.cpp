// SPDX-License-Identifier: MIT
//
// StepRun: the internal batches of a call, from step block to output rows.
#include <algorithm>
#include <cstring>

#include "base/float_state.h"
#include "runtime/cancel.h"
#include "runtime/step_run.h"

namespace kvasir {

namespace {
using ull = unsigned long long;
}

Status StepRun::run_batches() {
  for (Append& append : appends_) {
    if (append.copies_tail) KV_RETURN_IF_ERROR(copy_tail(append));
  }
  for (std::vector<Part> parts = next_batch(); !parts.empty(); parts = next_batch()) {
    const uint32_t* stop = stop_word(options_.cancel);
    KV_CHECK(!stop_requested(stop), KV_CANCELLED, "cancelled after %llu of %llu tokens", ull{done_}, ull{total_});
    KV_RETURN_IF_ERROR(run_batch(parts));
    if (options_.progress == nullptr) continue;
    const HostFloatState floats;
    options_.progress(options_.progress_user, done_, total_);
  }
  return {};
}

// The rows of a shared last page move to a page of our own before we write behind them.
Status StepRun::copy_tail(const Append& append) {
  const kvb_api& api = context_.api();
  const auto rows = static_cast<uint32_t>(append.start % context_.plan_.page_tokens);
  for (uint32_t group = 0; group < context_.plan_.groups.size(); group++) {
    KV_RETURN_IF_ERROR(context_.noted(backend_call([&](kv_error* error) {
      return api.cache_copy_rows(context_.queue_.get(), context_.cache_.get(), group, append.sequence->pages.back(),
                                 append.fresh[0], 0, rows, error);
    })));
  }
  return {};
}

// Inputs in order, each as far as there is room: the first ones finish first, so output rows come in input order.
std::vector<StepRun::Part> StepRun::next_batch() {
  const ContextPlan& plan = context_.plan_;
  const uint32_t limit = options_.outputs == KV_OUTPUT_ALL ? plan.buckets.back().max_outputs : plan.max_batch_tokens;
  uint64_t room = limit;
  std::vector<Part> parts;
  for (Append& append : appends_) {
    const uint64_t left = inputs_[append.input].count - append.done;
    if (left == 0 || !append.status.ok()) continue;
    const uint64_t count = std::min(left, room);
    if (count == 0) break;
    parts.push_back({&append, count});
    room -= count;
  }
  return parts;
}

Status StepRun::run_batch(const std::vector<Part>& parts) {
  tokens_.clear();
  embeddings_.clear();
  positions_.clear();
  sequence_of_.clear();
  lengths_.clear();
  output_rows_of_.clear();
  trace_tokens_.clear();
  for (uint32_t s = 0; s < parts.size(); s++) add_tokens(parts[s], s);
  fill_page_tables(parts);

  // Rows of last tokens stay in the output block until the next call; rows for the callback are handed out at once.
  float* out = context_.output_.as<float>() + (options_.outputs == KV_OUTPUT_LAST ? output_rows_ * width_ : 0);
  KV_RETURN_IF_ERROR(submit(static_cast<uint32_t>(parts.size()), out));
  take_rows(parts, out);
  for (const Part& part : parts) {
    part.append->done += part.count;
    done_ += part.count;
  }
  return {};
}

void StepRun::add_tokens(const Part& part, uint32_t sequence) {
  Append& append = *part.append;
  const Context::Input& input = inputs_[append.input];
  const uint32_t dim = context_.model_->program().input_width;
  for (uint64_t i = append.done; i < append.done + part.count; i++) {
    const int32_t token = input.tokens != nullptr ? input.tokens[i] : KV_TOKEN_ROW;
    if (token == KV_TOKEN_ROW) {
      const auto row = static_cast<int32_t>(embeddings_.size() / dim);
      const float* data = input.rows + append.rows_done * dim;
      embeddings_.insert(embeddings_.end(), data, data + dim);
      append.rows_done++;
      tokens_.push_back(~row);
    } else {
      tokens_.push_back(token);
    }
    const bool last = i + 1 == input.count;
    if (options_.outputs == KV_OUTPUT_ALL || (options_.outputs == KV_OUTPUT_LAST && last)) {
      output_rows_of_.push_back(static_cast<uint32_t>(tokens_.size() - 1));
    }
    positions_.push_back(static_cast<uint32_t>(append.start + i));
    sequence_of_.push_back(sequence);
    if (relay_.active()) trace_tokens_.push_back({input.sequence, append.start + i});
  }
  lengths_.push_back(static_cast<uint32_t>(append.start + append.done + part.count));
}

uint32_t StepRun::page(const Append& append, uint64_t index) const {
  const std::vector<uint32_t>& own = append.sequence->pages;
  const uint64_t kept = own.size() - (append.copies_tail ? 1 : 0);
  return index < kept ? own[index] : append.fresh[index - kept];
}

void StepRun::fill_page_tables(const std::vector<Part>& parts) {
  const uint32_t page_tokens = context_.plan_.page_tokens;
  const uint32_t longest = *std::max_element(lengths_.begin(), lengths_.end());
  pages_per_sequence_ = (longest + page_tokens - 1) / page_tokens;
  pages_.assign(parts.size() * pages_per_sequence_, KVB_NONE);
  for (size_t s = 0; s < parts.size(); s++) {
    const uint32_t count = (lengths_[s] + page_tokens - 1) / page_tokens;
    for (uint32_t i = 0; i < count; i++) pages_[s * pages_per_sequence_ + i] = page(*parts[s].append, i);
  }
}

Status StepRun::submit(uint32_t sequences, float* out) {
  // Every cache group has the same pages.
  const std::vector<kvb_page_table> tables(context_.plan_.groups.size(), {pages_.data(), pages_per_sequence_, 0});
  kvb_step step = {};
  step.struct_size = sizeof step;
  step.token_count = static_cast<uint32_t>(tokens_.size());
  step.sequence_count = sequences;
  step.output_count = static_cast<uint32_t>(output_rows_of_.size());
  step.tokens = tokens_.data();
  step.embeddings = embeddings_.data();
  step.embedding_count = static_cast<uint32_t>(embeddings_.size() / context_.model_->program().input_width);
  step.positions = positions_.data();
  step.sequence_of = sequence_of_.data();
  step.lengths = lengths_.data();
  step.tables = tables.data();
  step.group_count = static_cast<uint32_t>(tables.size());
  step.output_rows = output_rows_of_.data();
  step.stop = stop_word(options_.cancel);
  if (relay_.active()) {
    relay_.begin(trace_tokens_, output_rows_of_);
    step.trace = TraceRelay::receive;
    step.trace_user = &relay_;
  }
  kvb_program* program = context_.program_for(step.token_count).handle.get();
  const uint64_t floats = uint64_t{step.output_count} * width_;
  uint64_t ticket = 0;
  KV_RETURN_IF_ERROR(context_.noted(backend_call([&](kv_error* error) {
    return context_.api().queue_submit(context_.queue_.get(), program, context_.cache_.get(), &step, out, floats,
                                       &ticket, error);
  })));
  return context_.noted(backend_call([&](kv_error* error) {
    return context_.api().queue_wait(context_.queue_.get(), ticket, KVB_WAIT_FOREVER, error);
  }));
}

void StepRun::take_rows(const std::vector<Part>& parts, float* out) {
  if (options_.outputs == KV_OUTPUT_NONE) return;
  const float* row = out;
  for (const Part& part : parts) {
    Append* append = part.append;
    const Context::Input& input = inputs_[append->input];
    const bool all = options_.outputs == KV_OUTPUT_ALL;
    const uint64_t rows = all ? part.count : (append->done + part.count == input.count ? 1 : 0);
    for (uint64_t i = 0; i < rows; i++, row += width_) {
      const uint64_t position = append->start + append->done + (all ? i : part.count - 1);
      check_row(append, row, position);
      if (!all || !append->status.ok()) continue;
      const HostFloatState floats;
      options_.row(options_.row_user, input.sequence, position, row, width_);
    }
    if (all || rows == 0) continue;
    output_rows_++;
    results_[append->input].rows = row - width_;
    if (options_.into != nullptr && append->status.ok()) {
      float* target = options_.into + append->input * width_;
      std::memcpy(target, row - width_, width_ * sizeof(float));
      results_[append->input].rows = target;
    }
  }
}

// NaN or infinity must never become a token.
void StepRun::check_row(Append* append, const float* row, uint64_t position) {
  if (!append->status.ok() || all_finite({row, width_})) return;
  const std::string& where = relay_.first_bad();
  append->status =
      Status::error(KV_BAD_LOGITS, "the %s of the token at position %llu hold NaN or infinity%s%s",
                    context_.model_->config().output ? "logits" : "hidden values", ull{position},
                    where.empty() ? "; a trace tells where it came from" : ", which first appeared in ", where.c_str());
  results_[append->input].rows = nullptr;
}

}  // namespace kvasir
