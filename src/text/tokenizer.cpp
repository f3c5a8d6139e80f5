// SPDX-License-Identifier: MIT
//
// What both kinds of vocabulary share: special tokens, the space prefix, decoding. The two encodings themselves are in
// spm_encoder.cpp and bpe_encoder.cpp.
#include "text/tokenizer.h"

#include <algorithm>

#include "text/bpe_encoder.h"
#include "text/byte_alphabet.h"
#include "text/spm_encoder.h"

namespace kvasir {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, how SentencePiece spells a space

// Control tokens that end a turn in chat models whose files name only one of them.
constexpr std::string_view kTurnEnds[] = {"<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",
                                          "<|end|>",       "<end_of_turn>", "<|end_of_text|>",
                                          "<|endoftext|>", "<|endofturn|>", "<EOT>"};

std::string read_space_marks(std::string_view piece) {
  std::string bytes;
  for (size_t begin = 0; begin < piece.size();) {
    if (piece.substr(begin, kSpaceMark.size()) == kSpaceMark) {
      bytes.push_back(' ');
      begin += kSpaceMark.size();
    } else {
      bytes.push_back(piece[begin++]);
    }
  }
  return bytes;
}

}  // namespace

Status Tokenizer::create(Vocabulary&& vocabulary, std::unique_ptr<Tokenizer>* out) {
  KV_RETURN_IF_ERROR(check_vocabulary(vocabulary));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary)));
  const Vocabulary& owned = tokenizer->vocabulary_;
  tokenizer->read_pieces();
  const auto create_encoder = owned.model == "llama" ? &SpmEncoder::create : &BpeEncoder::create;
  KV_RETURN_IF_ERROR(create_encoder(owned, tokenizer->bytes_, &tokenizer->encoder_));
  tokenizer->collect_special();
  tokenizer->vocabulary_.merges = {};  // megabytes, and now held by the encoder as ids
  *out = std::move(tokenizer);
  return {};
}

void Tokenizer::read_pieces() {
  const bool byte_level = vocabulary_.model == "gpt2";
  bytes_.resize(vocabulary_.pieces.size());
  for (size_t token = 0; token < bytes_.size(); ++token) {
    const std::string& piece = vocabulary_.pieces[token];
    const int32_t kind = type(static_cast<int32_t>(token));
    if (kind == kTokenControl || kind == kTokenUnknown) {
      bytes_[token] = piece;
    } else if (kind == kTokenByte) {
      bytes_[token].assign(1, static_cast<char>(parse_byte_piece(piece)));
    } else if (!byte_level) {
      bytes_[token] = read_space_marks(piece);
    } else if (kind == kTokenUserDefined || !read_alphabet(piece, &bytes_[token])) {
      bytes_[token] = piece;  // user-defined tokens are spelled as they are, not in the byte alphabet
    }
  }
}

void Tokenizer::collect_special() {
  for (size_t index = 0; index < bytes_.size(); ++index) {
    const auto token = static_cast<int32_t>(index);
    const int32_t kind = type(token);
    if (kind == kTokenUserDefined) user_defined_.add(bytes_[index], token);
    if (kind == kTokenUserDefined || is_special(token)) all_special_.add(bytes_[index], token);
    const bool ends_turn = std::find(std::begin(kTurnEnds), std::end(kTurnEnds), bytes_[index]) != std::end(kTurnEnds);
    const bool named = token == vocabulary_.eos || token == vocabulary_.eot || token == vocabulary_.eom;
    if (named || (kind == kTokenControl && ends_turn)) end_of_generation_.push_back(token);
  }
  user_defined_.finish();
  all_special_.finish();
}

bool Tokenizer::in_vocabulary(int32_t token) const {
  return token >= 0 && static_cast<size_t>(token) < vocabulary_.pieces.size();
}

int32_t Tokenizer::type(int32_t token) const { return vocabulary_.type(static_cast<size_t>(token)); }

bool Tokenizer::is_special(int32_t token) const {
  return in_vocabulary(token) && (type(token) == kTokenControl || type(token) == kTokenUnknown);
}

bool Tokenizer::is_end_of_generation(int32_t token) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), token);
}

// Whether text after this token starts anew, with a space prefix. The unknown token does not: it stands for text.
bool Tokenizer::interrupts_text(int32_t token) const {
  return type(token) == kTokenControl || type(token) == kTokenUserDefined;
}

Status Tokenizer::encode_text(std::string_view text, bool prefixed, std::vector<int32_t>* out) const {
  if (!prefixed) return encoder_->encode(text, out);
  std::string longer;
  longer.reserve(text.size() + 1);
  longer.append(1, ' ').append(text);
  return encoder_->encode(longer, out);
}

Status Tokenizer::encode(std::string_view text, bool add_special, bool parse_special, std::vector<int32_t>* out) const {
  KV_CHECK(text.size() < TextEncoder::kLongestText, KV_INVALID_ARGUMENT, "the text has %zu bytes, more than %zu",
           text.size(), TextEncoder::kLongestText - 1);
  const bool prefixes = vocabulary_.model == "llama" && vocabulary_.add_space_prefix;
  const SpecialMatcher& matcher = parse_special ? all_special_ : user_defined_;
  std::vector<int32_t> tokens;
  if (add_special && vocabulary_.add_bos) tokens.push_back(vocabulary_.bos);
  bool prefixed = prefixes;
  for (size_t begin = 0; begin < text.size();) {
    const SpecialMatcher::Match special = matcher.find(text, begin);
    if (special.begin > begin) {
      KV_RETURN_IF_ERROR(encode_text(text.substr(begin, special.begin - begin), prefixed, &tokens));
      prefixed = false;
    }
    if (special.length > 0) {
      tokens.push_back(special.token);
      prefixed = prefixes && interrupts_text(special.token);
    }
    begin = special.begin + special.length;
  }
  if (add_special && vocabulary_.add_eos) tokens.push_back(vocabulary_.eos);
  out->swap(tokens);
  return {};
}

Status Tokenizer::piece(int32_t token, bool render_special, std::string_view* out) const {
  KV_CHECK(in_vocabulary(token), KV_INVALID_ARGUMENT, "token %d is outside the vocabulary of %zu", token,
           vocabulary_.pieces.size());
  *out = is_special(token) && !render_special ? std::string_view() : bytes_[static_cast<size_t>(token)];
  return {};
}

Status Tokenizer::decode(std::span<const int32_t> tokens, bool render_special, std::string* out) const {
  const bool prefixes = vocabulary_.model == "llama" && vocabulary_.add_space_prefix;
  std::string text;
  bool prefixed = prefixes;
  for (const int32_t token : tokens) {
    std::string_view bytes;
    KV_RETURN_IF_ERROR(piece(token, render_special, &bytes));
    if (interrupts_text(token)) {
      prefixed = prefixes;
    } else if (!bytes.empty()) {
      if (prefixed && bytes[0] == ' ') bytes.remove_prefix(1);
      prefixed = false;
    }
    text.append(bytes);
  }
  out->swap(text);
  return {};
}

}  // namespace kvasir
