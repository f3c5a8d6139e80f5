// SPDX-License-Identifier: MIT
//
// Byte-level BPE (tokenizer model "gpt2"): text is split into words; in each word, single bytes are joined by the merge
// rules, the lowest rank first, the leftmost of equals.
#pragma once

#include <array>
#include <memory>

#include "text/pretokenizer.h"
#include "text/text_encoder.h"

namespace kvasir {

class BpeEncoder final : public TextEncoder {
 public:
  // `bytes[token]` is what a token stands for; it must outlive the encoder.
  static Status create(const Vocabulary& vocabulary, const std::vector<std::string>& bytes,
                       std::unique_ptr<TextEncoder>* out);

  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  struct Symbol;
  struct Join;
  struct Work;
  struct Rule {
    uint32_t rank;
    int32_t token;
  };

  BpeEncoder() { byte_tokens_.fill(-1); }
  Status read_merges(const Vocabulary& vocabulary);
  Status encode_word(std::string_view word, size_t offset, Work* work, std::vector<int32_t>* out) const;
  void propose(Work* work, int32_t left, int32_t right) const;
  void join_all(Work* work) const;

  std::unique_ptr<Pretokenizer> pretokenizer_;
  bool whole_words_first_ = false;
  TokenMap tokens_;  // filled only for whole_words_first_
  std::array<int32_t, 256> byte_tokens_;
  std::unordered_map<uint64_t, Rule> merges_;  // by left << 32 | right
};

}  // namespace kvasir
