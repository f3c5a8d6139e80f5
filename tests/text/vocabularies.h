// SPDX-License-Identifier: MIT
//
// Small vocabularies made in memory, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"

namespace kvasir::testing {

inline int32_t add_token(Vocabulary* vocabulary, std::string piece, int32_t type = kTokenNormal, float score = 0.0f) {
  vocabulary->pieces.push_back(std::move(piece));
  vocabulary->types.push_back(type);
  if (vocabulary->model == "llama") vocabulary->scores.push_back(score);
  return static_cast<int32_t>(vocabulary->pieces.size()) - 1;
}

constexpr int32_t kFirstByteToken = 3;  // of byte_vocabulary: byte b is token 3 + b
constexpr int32_t kEndToken = 259;      // "<end>"

// Fixture F7: 256 byte tokens, bos, eos, and one control token spelled "<end>".
inline Vocabulary byte_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  add_token(&vocabulary, "<unk>", kTokenUnknown);
  add_token(&vocabulary, "<s>", kTokenControl);
  add_token(&vocabulary, "</s>", kTokenControl);
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    add_token(&vocabulary, std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", kTokenByte);
  }
  add_token(&vocabulary, "<end>", kTokenControl);
  vocabulary.unk = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  return vocabulary;
}

// F7 and some words: a SentencePiece-style vocabulary with a space prefix and a user-defined token. The comments are
// ids.
inline Vocabulary spm_vocabulary() {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.add_bos = true;
  vocabulary.add_space_prefix = true;
  const std::string mark = "\xE2\x96\x81";
  add_token(&vocabulary, mark, kTokenNormal, -20);        // 260
  add_token(&vocabulary, "a", kTokenNormal, -21);         // 261
  add_token(&vocabulary, "b", kTokenNormal, -22);         // 262
  add_token(&vocabulary, "c", kTokenNormal, -23);         // 263
  add_token(&vocabulary, "ab", kTokenNormal, -2);         // 264
  add_token(&vocabulary, "bc", kTokenNormal, -1);         // 265
  add_token(&vocabulary, mark + "a", kTokenNormal, -3);   // 266
  add_token(&vocabulary, "abc", kTokenNormal, -4);        // 267
  add_token(&vocabulary, "aa", kTokenNormal, -5);         // 268
  add_token(&vocabulary, mark + mark, kTokenNormal, -6);  // 269
  add_token(&vocabulary, "\n\n", kTokenUserDefined);      // 270
  add_token(&vocabulary, "\xC3\xA9", kTokenNormal, -7);   // 271
  return vocabulary;
}

// Byte-level BPE with every byte (byte b is token b), a few merges, "<end>" (control) and "<tab>" (user-defined).
inline Vocabulary bpe_vocabulary(std::string pre = "gpt-2") {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) add_token(&vocabulary, alphabet_character(static_cast<uint8_t>(byte)));
  const std::string space = alphabet_character(' ');
  for (const std::string& piece :
       {std::string("ab"), std::string("bc"), std::string("abc"), space + "a", space + "abc"}) {
    add_token(&vocabulary, piece);  // 256 to 260
  }
  add_token(&vocabulary, "<end>", kTokenControl);      // 261
  add_token(&vocabulary, "<tab>", kTokenUserDefined);  // 262
  add_token(&vocabulary, "aa");                        // 263
  vocabulary.merges = {"b c", "a b", "a bc", space + " a", "a a"};
  vocabulary.eos = 261;
  return vocabulary;
}

// Null when creation fails.
inline std::unique_ptr<Tokenizer> make_tokenizer(Vocabulary vocabulary, std::string* why = nullptr) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = Tokenizer::create(std::move(vocabulary), &tokenizer);
  if (why != nullptr) *why = status.message();
  return tokenizer;
}

}  // namespace kvasir::testing
