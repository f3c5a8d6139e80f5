// SPDX-License-Identifier: MIT
//
// Defaults and checks of a Vocabulary.
#include "text/vocabulary.h"

#include <cmath>
#include <unordered_map>
#include <utility>

#include "text/pretokenizer.h"
#include "text/utf8.h"

namespace kvasir {
namespace {

constexpr size_t kMostTokens = size_t{1} << 24;
constexpr size_t kMostMerges = size_t{1} << 26;
constexpr size_t kLongestPiece = size_t{1} << 16;
// Recognising special tokens costs up to this many steps per byte of text.
constexpr size_t kLongestSpecial = 1024;

Status check_sizes(const Vocabulary& v) {
  KV_CHECK(v.model == "llama" || v.model == "gpt2", KV_UNSUPPORTED,
           "tokenizer model '%s' is not known (known: llama, gpt2)", quote_bytes(v.model).c_str());
  const size_t tokens = v.pieces.size();
  KV_CHECK(tokens > 0, KV_CORRUPT, "the vocabulary has no tokens");
  KV_CHECK(tokens <= kMostTokens, KV_CORRUPT, "the vocabulary has %zu tokens, more than %zu", tokens, kMostTokens);
  KV_CHECK(v.types.empty() || v.types.size() == tokens, KV_CORRUPT, "the vocabulary has %zu tokens but %zu token types",
           tokens, v.types.size());
  KV_CHECK(v.scores.empty() || v.scores.size() == tokens, KV_CORRUPT, "the vocabulary has %zu tokens but %zu scores",
           tokens, v.scores.size());
  KV_CHECK(v.merges.size() <= kMostMerges, KV_CORRUPT, "the vocabulary has %zu merges, more than %zu", v.merges.size(),
           kMostMerges);
  if (v.model == "llama") {
    KV_CHECK(!v.scores.empty(), KV_CORRUPT, "the vocabulary has no scores, which tokenizer model 'llama' needs");
  } else {
    KV_CHECK(!v.merges.empty(), KV_CORRUPT, "the vocabulary has no merges, which tokenizer model 'gpt2' needs");
  }
  return {};
}

Status check_special_ids(const Vocabulary& v) {
  const std::pair<const char*, int32_t> specials[] = {{"bos", v.bos}, {"eos", v.eos}, {"eot", v.eot}, {"eom", v.eom},
                                                      {"unk", v.unk}, {"sep", v.sep}, {"pad", v.pad}};
  for (const auto& [name, id] : specials) {
    KV_CHECK(id >= -1 && id < static_cast<int64_t>(v.pieces.size()), KV_CORRUPT,
             "the %s token is %d, but the vocabulary has %zu tokens", name, id, v.pieces.size());
  }
  KV_CHECK(!v.add_bos || v.bos >= 0, KV_CORRUPT, "the vocabulary asks for a bos token but names none");
  KV_CHECK(!v.add_eos || v.eos >= 0, KV_CORRUPT, "the vocabulary asks for an eos token but names none");
  return {};
}

Status check_token(const Vocabulary& v, size_t token) {
  const std::string& piece = v.pieces[token];
  const int32_t type = v.types.empty() ? kTokenNormal : v.types[token];
  KV_CHECK(type >= kTokenUndefined && type <= kTokenByte, KV_CORRUPT, "token %zu has type %d, which is not known",
           token, type);
  KV_CHECK(type != kTokenByte || parse_byte_piece(piece) >= 0, KV_CORRUPT,
           "byte token %zu is '%s', not of the form <0xNN>", token, quote_bytes(piece).c_str());
  const bool special = type == kTokenControl || type == kTokenUserDefined;
  const size_t longest = special ? kLongestSpecial : kLongestPiece;
  KV_CHECK(piece.size() <= longest, KV_CORRUPT, "token %zu is %zu bytes long, more than %zu", token, piece.size(),
           longest);
  KV_CHECK(v.scores.empty() || std::isfinite(v.scores[token]), KV_CORRUPT, "the score of token %zu is not finite",
           token);
  return {};
}

}  // namespace

void Vocabulary::set_defaults() {
  const bool llama = model == "llama";
  bos = llama ? 1 : -1;
  eos = llama ? 2 : -1;
  unk = llama ? 0 : -1;
  const PretokenizerRule* rule = llama ? nullptr : find_pretokenizer_rule(pre);
  add_bos = llama || (rule != nullptr && rule->adds_bos);
  add_space_prefix = llama;
}

int parse_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  int value = 0;
  for (const char c : piece.substr(3, 2)) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (c >= 'A' && c <= 'F') {
      value = value * 16 + (c - 'A' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

Status check_vocabulary(const Vocabulary& vocabulary) {
  KV_RETURN_IF_ERROR(check_sizes(vocabulary));
  KV_RETURN_IF_ERROR(check_special_ids(vocabulary));
  std::unordered_map<std::string_view, size_t> seen;
  seen.reserve(vocabulary.pieces.size());
  for (size_t token = 0; token < vocabulary.pieces.size(); ++token) {
    KV_RETURN_IF_ERROR(check_token(vocabulary, token));
    const std::string& piece = vocabulary.pieces[token];
    if (piece.empty()) continue;  // placeholders exist in real files; text can never become one
    const auto [first, inserted] = seen.emplace(piece, token);
    KV_CHECK(inserted, KV_CORRUPT, "tokens %zu and %zu are both '%s'", first->second, token,
             quote_bytes(piece).c_str());
  }
  return {};
}

}  // namespace kvasir
