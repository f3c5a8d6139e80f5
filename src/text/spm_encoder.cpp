// SPDX-License-Identifier: MIT
//
// The joins run over a linked list of symbols with a heap of proposals: O(n log n) for n bytes. A proposal is stale
// when either side has changed since, which its recorded length reveals.
#include "text/spm_encoder.h"

#include <algorithm>
#include <queue>

#include "text/utf8.h"

namespace kvasir {

struct SpmEncoder::Symbol {
  int32_t previous;
  int32_t next;
  uint32_t begin;
  uint32_t length;  // 0: joined into an earlier symbol
};

struct SpmEncoder::Join {
  float score;
  int32_t left;
  int32_t right;
  uint32_t length;
  // Order of the heap: true when `other` is to be taken first.
  bool operator<(const Join& other) const { return score < other.score || (score == other.score && left > other.left); }
};

struct SpmEncoder::Work {
  std::string_view text;
  std::vector<Symbol> symbols;
  std::priority_queue<Join> joins;
};

Status SpmEncoder::create(const Vocabulary& vocabulary, const std::vector<std::string>& bytes,
                          std::unique_ptr<TextEncoder>* out) {
  std::unique_ptr<SpmEncoder> encoder(new SpmEncoder(vocabulary.scores));
  encoder->unknown_ = vocabulary.unk;
  encoder->tokens_.reserve(bytes.size());
  for (size_t token = 0; token < bytes.size(); ++token) {
    const auto id = static_cast<int32_t>(token);
    if (vocabulary.type(token) == kTokenByte) {
      encoder->byte_tokens_[static_cast<uint8_t>(bytes[token][0])] = id;
    } else if (vocabulary.type(token) == kTokenNormal && !bytes[token].empty()) {
      encoder->tokens_.emplace(bytes[token], id);
      encoder->longest_ = std::max(encoder->longest_, bytes[token].size());
    }
  }
  *out = std::move(encoder);
  return {};
}

// Puts the pair on the heap if a token spells it.
void SpmEncoder::propose(Work* work, int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return;
  const Symbol& a = work->symbols[static_cast<size_t>(left)];
  const Symbol& b = work->symbols[static_cast<size_t>(right)];
  const uint32_t length = a.length + b.length;
  if (length > longest_) return;
  const auto token = tokens_.find(work->text.substr(a.begin, length));
  if (token == tokens_.end()) return;
  work->joins.push({scores_[static_cast<size_t>(token->second)], left, right, length});
}

void SpmEncoder::join_all(Work* work) const {
  std::vector<Symbol>& symbols = work->symbols;
  while (!work->joins.empty()) {
    const Join join = work->joins.top();
    work->joins.pop();
    Symbol& left = symbols[static_cast<size_t>(join.left)];
    Symbol& right = symbols[static_cast<size_t>(join.right)];
    if (left.length == 0 || right.length == 0 || left.length + right.length != join.length) continue;
    left.length = join.length;
    left.next = right.next;
    right.length = 0;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = join.left;
    propose(work, left.previous, join.left);
    propose(work, join.left, left.next);
  }
}

Status SpmEncoder::append_symbol(std::string_view symbol, size_t offset, std::vector<int32_t>* out) const {
  if (const auto token = tokens_.find(symbol); token != tokens_.end()) {
    out->push_back(token->second);
    return {};
  }
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; };
  const bool spellable = std::all_of(symbol.begin(), symbol.end(), [&](char c) { return byte_token(c) >= 0; });
  if (spellable) {
    for (const char c : symbol) out->push_back(byte_token(c));
    return {};
  }
  KV_CHECK(unknown_ >= 0, KV_UNSUPPORTED,
           "the vocabulary has no token for '%s' at byte %zu, no byte tokens for it and no unknown token",
           quote_bytes(symbol).c_str(), offset);
  out->push_back(unknown_);
  return {};
}

Status SpmEncoder::encode(std::string_view text, std::vector<int32_t>* out) const {
  Work work;
  work.text = text;
  for (size_t begin = 0; begin < text.size();) {
    const size_t length = std::max<size_t>(1, utf8_character_length(text.substr(begin)));
    const auto index = static_cast<int32_t>(work.symbols.size());
    const bool last = begin + length == text.size();
    work.symbols.push_back(
        {index - 1, last ? -1 : index + 1, static_cast<uint32_t>(begin), static_cast<uint32_t>(length)});
    begin += length;
  }
  for (int32_t right = 1; right < static_cast<int32_t>(work.symbols.size()); ++right) propose(&work, right - 1, right);
  join_all(&work);
  for (const Symbol& symbol : work.symbols) {
    if (symbol.length == 0) continue;
    KV_RETURN_IF_ERROR(append_symbol(text.substr(symbol.begin, symbol.length), symbol.begin, out));
  }
  return {};
}

}  // namespace kvasir
