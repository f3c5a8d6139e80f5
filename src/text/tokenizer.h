// SPDX-License-Identifier: MIT
//
// Tokenizer: text to token ids and back, for one vocabulary. Immutable, so any number of threads may use it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/special_matcher.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"

namespace kvasir {

// What is text and what is not. A control token never comes out of text unless the caller asks (parse_special), and
// then also the unknown token by its spelling. A user-defined token is text that always becomes one token (runs of
// spaces in some vocabularies, accented letters in others), so it is recognised always. Everything else goes through
// the encoder.
//
// The space prefix (vocabularies of model "llama" that ask for it). encode() treats the first text, and text that
// follows a recognised control or user-defined token, as if a space stood before it; decode() removes one space, if
// there is one, at exactly these places: at the start, and after a control or user-defined token. piece() removes
// nothing.
//
// Round trip. For every byte string x, valid UTF-8 or not, decode(encode(x, false, false)) == x, and with special
// tokens parsed and rendered as well. What cannot keep this promise is refused, with one exception: a "llama"
// vocabulary without byte tokens writes its unknown token, as its model was taught. A byte-level vocabulary that lacks
// a byte (falcon lacks 0x0B, say) refuses text that holds it.
class Tokenizer {
 public:
  // Checks the vocabulary and builds the tables. On failure `out` is untouched.
  static Status create(Vocabulary&& vocabulary, std::unique_ptr<Tokenizer>* out);

  // Replaces `out` by the tokens of `text` (any bytes, NUL included). add_special: bos before and eos after, as the
  // vocabulary asks; a bos that the text itself spells is not counted. On failure `out` is untouched.
  Status encode(std::string_view text, bool add_special, bool parse_special, std::vector<int32_t>* out) const;

  // The bytes of one token, maybe part of a character; empty for control and unknown tokens unless render_special.
  // Valid as long as the tokenizer.
  Status piece(int32_t token, bool render_special, std::string_view* out) const;

  // Replaces `out` by the bytes of all tokens. On failure `out` is untouched.
  Status decode(std::span<const int32_t> tokens, bool render_special, std::string* out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool is_special(int32_t token) const;            // control or unknown: no text unless rendered
  bool is_end_of_generation(int32_t token) const;  // eos, eot, eom, or a control token known to end a turn

 private:
  explicit Tokenizer(Vocabulary&& vocabulary) : vocabulary_(std::move(vocabulary)) {}
  bool in_vocabulary(int32_t token) const;
  int32_t type(int32_t token) const;
  bool interrupts_text(int32_t token) const;
  void read_pieces();
  void collect_special();
  Status encode_text(std::string_view text, bool prefixed, std::vector<int32_t>* out) const;

  Vocabulary vocabulary_;
  std::vector<std::string> bytes_;  // [vocab], what each token stands for
  std::unique_ptr<TextEncoder> encoder_;
  SpecialMatcher user_defined_;
  SpecialMatcher all_special_;              // user-defined, control and unknown
  std::vector<int32_t> end_of_generation_;  // sorted
};

}  // namespace kvasir
