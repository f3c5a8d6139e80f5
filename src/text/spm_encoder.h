// SPDX-License-Identifier: MIT
//
// SentencePiece-style encoding (tokenizer model "llama"): starts from single characters and joins, again and again, the
// adjacent pair whose joined token has the highest score, the leftmost of equals. What is left without a token becomes
// byte tokens; where those are missing, the unknown token.
#pragma once

#include <array>
#include <memory>

#include "text/text_encoder.h"

namespace kvasir {

class SpmEncoder final : public TextEncoder {
 public:
  // `bytes[token]` is what a token stands for (U+2581 already read as a space). Both must outlive the encoder.
  static Status create(const Vocabulary& vocabulary, const std::vector<std::string>& bytes,
                       std::unique_ptr<TextEncoder>* out);

  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  struct Symbol;
  struct Join;
  struct Work;

  explicit SpmEncoder(const std::vector<float>& scores) : scores_(scores) { byte_tokens_.fill(-1); }
  void propose(Work* work, int32_t left, int32_t right) const;
  void join_all(Work* work) const;
  Status append_symbol(std::string_view symbol, size_t offset, std::vector<int32_t>* out) const;

  const std::vector<float>& scores_;
  TokenMap tokens_;
  std::array<int32_t, 256> byte_tokens_;
  int32_t unknown_ = -1;
  size_t longest_ = 0;  // bytes of the longest token in tokens_
};

}  // namespace kvasir
