// SPDX-License-Identifier: MIT
//
// Context: sequences and their pages. Nothing here computes; only page growth and poison reach the device.
#include <algorithm>
#include <utility>

#include "runtime/context.h"

namespace kvasir {

namespace {
using ull = unsigned long long;
}

Status Context::find(kv_sequence id, const Sequence** out) const {
  const auto found = sequences_.find(id);
  KV_CHECK(found != sequences_.end(), KV_INVALID_ARGUMENT, "sequence %llu %s", ull{id},
           id < next_id_ ? "was released" : "does not exist");
  *out = &found->second;
  return {};
}

Status Context::find(kv_sequence id, Sequence** out) {
  const Sequence* checked = nullptr;
  KV_RETURN_IF_ERROR(std::as_const(*this).find(id, &checked));
  *out = &sequences_.find(id)->second;
  return {};
}

Status Context::create_sequence(kv_sequence* out) {
  KV_RETURN_IF_ERROR(alive());
  sequences_.emplace(next_id_, Sequence());
  *out = next_id_++;
  return {};
}

Status Context::fork(kv_sequence id, uint64_t length, kv_sequence* out) {
  KV_RETURN_IF_ERROR(alive());
  const Sequence* parent = nullptr;
  KV_RETURN_IF_ERROR(std::as_const(*this).find(id, &parent));
  KV_CHECK(length <= parent->tokens.size(), KV_INVALID_ARGUMENT,
           "fork at %llu of sequence %llu, which holds %zu tokens", ull{length}, ull{id}, parent->tokens.size());
  const size_t pages = (length + plan_.page_tokens - 1) / plan_.page_tokens;
  Sequence child;
  child.tokens.assign(parent->tokens.begin(), parent->tokens.begin() + static_cast<ptrdiff_t>(length));
  child.pages.assign(parent->pages.begin(), parent->pages.begin() + static_cast<ptrdiff_t>(pages));
  const auto inserted = sequences_.emplace(next_id_, std::move(child)).first;  // nothing below can fail
  for (const uint32_t page : inserted->second.pages) pages_.retain(page);
  *out = next_id_++;
  return {};
}

Status Context::truncate(kv_sequence id, uint64_t length) {
  KV_RETURN_IF_ERROR(alive());
  Sequence* sequence = nullptr;
  KV_RETURN_IF_ERROR(find(id, &sequence));
  KV_CHECK(length <= sequence->tokens.size(), KV_INVALID_ARGUMENT,
           "truncation of sequence %llu to %llu tokens: it holds %zu", ull{id}, ull{length}, sequence->tokens.size());
  const size_t keep = (length + plan_.page_tokens - 1) / plan_.page_tokens;
  sequence->tokens.resize(length);
  while (sequence->pages.size() > keep) {
    const uint32_t page = sequence->pages.back();
    sequence->pages.pop_back();
    release_page(page);
    if (pages_.users(page) != 0) recount_rows(sequence->pages.size(), page);
  }
  if (keep != 0) recount_rows(keep - 1, sequence->pages[keep - 1]);
  return {};
}

Status Context::release(kv_sequence id) {
  Sequence* sequence = nullptr;
  KV_RETURN_IF_ERROR(find(id, &sequence));
  const std::vector<uint32_t> pages = std::move(sequence->pages);
  sequences_.erase(id);
  for (size_t i = 0; i < pages.size(); i++) {
    release_page(pages[i]);
    if (pages_.users(pages[i]) != 0) recount_rows(i, pages[i]);
  }
  return {};
}

Status Context::length(kv_sequence id, uint64_t* out) const {
  const Sequence* sequence = nullptr;
  KV_RETURN_IF_ERROR(find(id, &sequence));
  *out = sequence->tokens.size();
  return {};
}

Status Context::tokens(kv_sequence id, uint64_t first, size_t count, int32_t* out) const {
  const Sequence* sequence = nullptr;
  KV_RETURN_IF_ERROR(find(id, &sequence));
  const size_t held = sequence->tokens.size();
  KV_CHECK(first <= held && count <= held - first, KV_INVALID_ARGUMENT,
           "tokens [%llu, %llu + %zu) of a sequence that holds %zu", ull{first}, ull{first}, count, held);
  std::copy_n(sequence->tokens.begin() + static_cast<ptrdiff_t>(first), count, out);
  return {};
}

Status Context::ensure_free_pages(uint64_t free) {
  if (pages_.free() >= free) return {};
  const uint64_t have = pages_.count();
  const uint64_t least = have + (free - pages_.free());
  KV_CHECK(least <= plan_.max_pages, KV_CONTEXT_FULL,
           "%llu pages of %u tokens are needed, the context may have %llu (a memory budget, or max_tokens and "
           "max_sequences)",
           ull{least}, plan_.page_tokens, ull{plan_.max_pages});
  // Half as much again, so that growth is rare; just what is needed when that is too much for the device.
  const uint64_t generous = std::min(
      {std::max(least, have + have / 2), plan_.max_pages, std::max(least, plan_.max_tokens / plan_.page_tokens + 1)});
  Status status;
  for (const uint64_t count : {generous, least}) {
    pages_.reserve(static_cast<uint32_t>(count));  // so that bookkeeping cannot fail once the device has grown
    const std::vector<uint32_t> counts(plan_.groups.size(), static_cast<uint32_t>(count));
    status = noted(backend_call(
        [&](kv_error* error) { return api().cache_resize(queue_.get(), cache_.get(), counts.data(), error); }));
    if (status.code() == KV_OUT_OF_MEMORY && count != least) continue;
    if (!status.ok()) return status;
    pages_.grow(static_cast<uint32_t>(count));
    if (plan_.poison) {
      for (uint64_t page = have; page < count; page++) poison(static_cast<uint32_t>(page));
    }
    break;
  }
  return status;
}

void Context::release_page(uint32_t page) noexcept {
  if (pages_.release(page) && plan_.poison) poison(page);
}

void Context::poison(uint32_t page) noexcept {
  for (uint32_t group = 0; group < plan_.groups.size(); group++) {
    (void)api().cache_poison_page(queue_.get(), cache_.get(), group, page, nullptr);
  }
}

void Context::recount_rows(size_t page_index, uint32_t page) noexcept {
  const uint64_t begin = page_index * plan_.page_tokens;
  uint64_t rows = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (page_index >= sequence.pages.size() || sequence.pages[page_index] != page) continue;
    rows = std::max(rows, std::min<uint64_t>(sequence.tokens.size() - begin, plan_.page_tokens));
  }
  pages_.set_rows(page, static_cast<uint32_t>(rows));
}

}  // namespace kvasir
