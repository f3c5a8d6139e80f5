// SPDX-License-Identifier: MIT
//
// What a context should hold, kept by the simplest means: a token list for each sequence and the numbers of its pages.
// Tokens below 0 are embedding rows: -1 - r is row r of a fixed table.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "kvasir/kvasir.h"

namespace kvasir::test {

struct ModelInput {
  kv_sequence sequence = 0;
  std::vector<int32_t> tokens;
  bool bad_token = false;
};

class ContextModel {
 public:
  struct Sequence {
    std::vector<int32_t> tokens;
    std::vector<uint32_t> pages;
  };

  uint32_t page_tokens = 1, max_sequences = 1, layers = 0;
  uint64_t max_tokens = 0, max_pages = 0;
  std::map<kv_sequence, Sequence> held;
  uint64_t computed = 0, avoided = 0;

  uint64_t pages_of(uint64_t tokens) const { return (tokens + page_tokens - 1) / page_tokens; }

  struct Page {
    uint32_t users = 0;
    uint64_t rows = 0;
  };
  std::map<uint32_t, Page> pages() const {
    std::map<uint32_t, Page> all;
    for (const auto& [id, sequence] : held) {
      for (size_t i = 0; i < sequence.pages.size(); i++) {
        Page& page = all[sequence.pages[i]];
        page.users++;
        page.rows = std::max(page.rows, std::min<uint64_t>(sequence.tokens.size() - i * page_tokens, page_tokens));
      }
    }
    return all;
  }
  uint64_t rows() const {
    uint64_t sum = 0;
    for (const auto& [number, page] : pages()) sum += page.rows;
    return sum;
  }
  uint64_t shared() const {
    uint64_t sum = 0;
    for (const auto& [number, page] : pages()) sum += page.users > 1 ? 1 : 0;
    return sum;
  }
  uint64_t free_tokens() const { return std::min(max_tokens - rows(), (max_pages - pages().size()) * page_tokens); }
  bool shares_tail(const Sequence& sequence) const {
    return sequence.tokens.size() % page_tokens != 0 && pages().at(sequence.pages.back()).users > 1;
  }

  // The status of each input of a step in which nothing fails but the admission of those in `failed` (empty: none).
  std::vector<kv_status> predict(const std::vector<ModelInput>& inputs, const std::vector<bool>& failed = {}) const {
    std::vector<kv_status> statuses;
    std::vector<kv_sequence> admitted;
    uint64_t more_rows = 0, more_pages = 0;
    for (const ModelInput& input : inputs) {
      const auto found = held.find(input.sequence);
      const bool twice = std::count(admitted.begin(), admitted.end(), input.sequence) != 0;
      statuses.push_back(KV_INVALID_ARGUMENT);
      if (found == held.end() || twice || input.tokens.empty()) continue;
      const Sequence& sequence = found->second;
      const uint64_t start = sequence.tokens.size();
      const uint64_t copied = shares_tail(sequence) ? start % page_tokens : 0;
      const uint64_t count = input.tokens.size();
      if (rows() + more_rows + copied + count > max_tokens) statuses.back() = KV_CONTEXT_FULL;
      if (statuses.back() == KV_CONTEXT_FULL || input.bad_token) continue;
      const uint64_t new_pages = pages_of(start + count) - sequence.pages.size() + (copied != 0 ? 1 : 0);
      statuses.back() = pages().size() + more_pages + new_pages > max_pages ? KV_CONTEXT_FULL : KV_OK;
      if (statuses.back() != KV_OK || (!failed.empty() && failed[statuses.size() - 1])) continue;
      admitted.push_back(input.sequence);
      more_rows += copied + count;
      more_pages += new_pages;
    }
    return statuses;
  }

  void append(kv_sequence id, const std::vector<int32_t>& tokens) {
    if (tokens.empty()) return;
    Sequence& sequence = held.at(id);
    if (shares_tail(sequence)) sequence.pages.back() = next_page_++;
    avoided += 3 * uint64_t{layers} * sequence.tokens.size();
    computed += tokens.size();
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
    while (sequence.pages.size() < pages_of(sequence.tokens.size())) sequence.pages.push_back(next_page_++);
  }
  void truncate(kv_sequence id, uint64_t length) {
    Sequence& sequence = held.at(id);
    sequence.tokens.resize(length);
    sequence.pages.resize(pages_of(length));
  }
  void fork(kv_sequence parent, uint64_t length, kv_sequence child) {
    held[child] = held.at(parent);
    truncate(child, length);
  }

 private:
  uint32_t next_page_ = 0;
};

}  // namespace kvasir::test
