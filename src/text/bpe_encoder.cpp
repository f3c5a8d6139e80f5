// SPDX-License-Identifier: MIT
//
// As in spm_encoder.cpp, joins run over a linked list with a heap of proposals, here between token ids. A word can be
// as long as the text (a megabyte of one letter), so nothing may be quadratic in it.
#include "text/bpe_encoder.h"

#include <queue>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace kvasir {

struct BpeEncoder::Symbol {
  int32_t previous;
  int32_t next;
  int32_t token;  // -1: joined into an earlier symbol
};

struct BpeEncoder::Join {
  uint32_t rank;
  int32_t left;
  int32_t right;
  int32_t left_token;  // what the sides were when this was proposed; anything else means it is stale
  int32_t right_token;
  int32_t joined;
  // Order of the heap: true when `other` is to be taken first.
  bool operator<(const Join& other) const { return rank > other.rank || (rank == other.rank && left > other.left); }
};

struct BpeEncoder::Work {
  std::vector<Symbol> symbols;
  std::priority_queue<Join> joins;
};

namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Status BpeEncoder::create(const Vocabulary& vocabulary, const std::vector<std::string>& bytes,
                          std::unique_ptr<TextEncoder>* out) {
  KV_CHECK(!vocabulary.pre.empty(), KV_UNSUPPORTED,
           "the vocabulary names no pre-tokenizer (tokenizer.ggml.pre), and how to split text cannot be guessed");
  const PretokenizerRule* rule = find_pretokenizer_rule(vocabulary.pre);
  KV_CHECK(rule != nullptr, KV_UNSUPPORTED, "pre-tokenizer '%s' is not known (known: %s)",
           quote_bytes(vocabulary.pre).c_str(), known_pretokenizers().c_str());
  std::unique_ptr<BpeEncoder> encoder(new BpeEncoder);
  KV_RETURN_IF_ERROR(Pretokenizer::create(*rule, &encoder->pretokenizer_));
  encoder->whole_words_first_ = rule->whole_words_first;
  for (size_t token = 0; token < bytes.size(); ++token) {
    if (vocabulary.type(token) != kTokenNormal || bytes[token].empty()) continue;
    const auto id = static_cast<int32_t>(token);
    const auto first = static_cast<uint8_t>(bytes[token][0]);
    if (vocabulary.pieces[token] == alphabet_character(first)) encoder->byte_tokens_[first] = id;
    if (rule->whole_words_first) encoder->tokens_.emplace(bytes[token], id);
  }
  KV_RETURN_IF_ERROR(encoder->read_merges(vocabulary));
  *out = std::move(encoder);
  return {};
}

Status BpeEncoder::read_merges(const Vocabulary& vocabulary) {
  TokenMap pieces;
  pieces.reserve(vocabulary.pieces.size());
  for (size_t token = 0; token < vocabulary.pieces.size(); ++token) {
    pieces.emplace(vocabulary.pieces[token], static_cast<int32_t>(token));
  }
  merges_.reserve(vocabulary.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string& merge = vocabulary.merges[rank];
    const size_t space = merge.find(' ', 1);
    KV_CHECK(space != std::string::npos && space + 1 < merge.size(), KV_CORRUPT,
             "merge %zu is '%s', not two pieces with a space between", rank, quote_bytes(merge).c_str());
    const std::string_view left = std::string_view(merge).substr(0, space);
    const std::string_view right = std::string_view(merge).substr(space + 1);
    joined.assign(left).append(right);
    int32_t tokens[3];
    const std::string_view spellings[3] = {left, right, joined};
    bool plain = true;
    for (size_t i = 0; i < 3; ++i) {
      const auto found = pieces.find(spellings[i]);
      KV_CHECK(found != pieces.end(), KV_CORRUPT, "merge %zu needs the token '%s', which the vocabulary does not have",
               rank, quote_bytes(spellings[i]).c_str());
      tokens[i] = found->second;
      plain = plain && vocabulary.type(static_cast<size_t>(tokens[i])) == kTokenNormal;
    }
    // Text must not turn into a control token by way of merges.
    if (plain) merges_.emplace(pair_key(tokens[0], tokens[1]), Rule{static_cast<uint32_t>(rank), tokens[2]});
  }
  return {};
}

void BpeEncoder::propose(Work* work, int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return;
  const int32_t left_token = work->symbols[static_cast<size_t>(left)].token;
  const int32_t right_token = work->symbols[static_cast<size_t>(right)].token;
  const auto rule = merges_.find(pair_key(left_token, right_token));
  if (rule == merges_.end()) return;
  work->joins.push({rule->second.rank, left, right, left_token, right_token, rule->second.token});
}

void BpeEncoder::join_all(Work* work) const {
  std::vector<Symbol>& symbols = work->symbols;
  while (!work->joins.empty()) {
    const Join join = work->joins.top();
    work->joins.pop();
    Symbol& left = symbols[static_cast<size_t>(join.left)];
    Symbol& right = symbols[static_cast<size_t>(join.right)];
    if (left.token != join.left_token || right.token != join.right_token || left.next != join.right) continue;
    left.token = join.joined;
    left.next = right.next;
    right.token = -1;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = join.left;
    propose(work, left.previous, join.left);
    propose(work, join.left, left.next);
  }
}

Status BpeEncoder::encode_word(std::string_view word, size_t offset, Work* work, std::vector<int32_t>* out) const {
  if (whole_words_first_) {
    if (const auto whole = tokens_.find(word); whole != tokens_.end()) {
      out->push_back(whole->second);
      return {};
    }
  }
  work->symbols.clear();
  const auto count = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(word[static_cast<size_t>(i)]);
    const int32_t token = byte_tokens_[byte];
    KV_CHECK(token >= 0, KV_UNSUPPORTED, "the vocabulary has no token for byte 0x%02X, which the text has at byte %zu",
             byte, offset + static_cast<size_t>(i));
    work->symbols.push_back({i - 1, i + 1 < count ? i + 1 : -1, token});
  }
  for (int32_t right = 1; right < count; ++right) propose(work, right - 1, right);
  join_all(work);
  for (const Symbol& symbol : work->symbols) {
    if (symbol.token >= 0) out->push_back(symbol.token);
  }
  return {};
}

Status BpeEncoder::encode(std::string_view text, std::vector<int32_t>* out) const {
  std::vector<std::string_view> words;
  KV_RETURN_IF_ERROR(pretokenizer_->split(text, &words));
  Work work;
  for (const std::string_view word : words) {
    KV_RETURN_IF_ERROR(encode_word(word, static_cast<size_t>(word.data() - text.data()), &work, out));
  }
  return {};
}

}  // namespace kvasir
