// SPDX-License-Identifier: MIT
//
// Pretokenizer: splits text into the words that byte-level BPE then encodes one by one. Holds the compiled patterns of
// one rule; the rules themselves are in pretokenizer_rules.cpp.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kvasir {

struct PretokenizerRule {
  std::array<std::string_view, 5> names;  // the first is the rule's own, the others are aliases; unused ones are empty
  std::array<const char*, 6> patterns;    // applied one after another, each to every part the ones before left
  bool whole_words_first;                 // a word that is a token itself is not built from merges
  bool adds_bos;                          // files with this rule expect a bos token when they do not say
};

// Null for an unknown name.
const PretokenizerRule* find_pretokenizer_rule(std::string_view name);

// "gpt-2, llama-bpe, ...", for error sentences.
std::string known_pretokenizers();

class Pretokenizer {
 public:
  static Status create(const PretokenizerRule& rule, std::unique_ptr<Pretokenizer>* out);
  ~Pretokenizer();

  // Appends the words of `text`, in order and without gaps. Bytes that are not UTF-8 form words of their own: one per
  // unbroken run of such bytes. Thread-safe.
  Status split(std::string_view text, std::vector<std::string_view>* words) const;

 private:
  class Pattern;
  class MatchData;

  Pretokenizer();
  Status split_valid(std::string_view text, std::vector<std::string_view>* words) const;

  std::vector<Pattern> patterns_;
};

}  // namespace kvasir
