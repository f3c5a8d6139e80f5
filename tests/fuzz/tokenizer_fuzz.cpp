// SPDX-License-Identifier: MIT
//
// Two targets in one, by the first byte. Even: a text through one of the built-in vocabularies, which must come back
// byte by byte, also from the stream. Odd: a vocabulary made of the input, which may be refused, and a text through it,
// which may be refused; neither may do anything else.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/stream.h"
#include "text/tokenizer.h"
#include "text/vocabularies.h"

namespace {

using kvasir::Tokenizer;
using kvasir::Vocabulary;

void require(bool condition) {
  if (!condition) std::abort();
}

const Tokenizer& built_in(size_t index) {
  static const auto* tokenizers = [] {
    auto* all = new std::vector<std::unique_ptr<Tokenizer>>;
    all->push_back(kvasir::testing::make_tokenizer(kvasir::testing::spm_vocabulary()));
    for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "starcoder", "falcon", "deepseek-coder", "deepseek-llm"}) {
      all->push_back(kvasir::testing::make_tokenizer(kvasir::testing::bpe_vocabulary(pre)));
    }
    return all;
  }();
  return *(*tokenizers)[index % tokenizers->size()];
}

void check_text(const Tokenizer& tokenizer, bool parse_special, std::string_view text) {
  std::vector<int32_t> tokens;
  std::string decoded;
  require(tokenizer.encode(text, false, parse_special, &tokens).ok());
  require(tokenizer.decode(tokens, true, &decoded).ok());
  require(decoded == text);

  std::string pieces;
  std::string streamed;
  kvasir::TextStream stream(tokenizer, true);
  for (const int32_t token : tokens) {
    std::string_view piece;
    require(tokenizer.piece(token, true, &piece).ok());
    pieces += piece;
    std::string_view chunk;
    require(stream.push(token, &chunk).ok());
    streamed += chunk;
  }
  streamed += stream.flush();
  require(streamed == pieces);
}

// Takes a byte and that many bytes after it.
std::string_view take(std::string_view* input) {
  if (input->empty()) return {};
  const size_t length = static_cast<uint8_t>((*input)[0]) % 32;
  const std::string_view taken = input->substr(1, length);
  input->remove_prefix(1 + taken.size());
  return taken;
}

// [model and flags] [special ids] then per token: length, bytes, type. A zero length ends the list; merges follow
// likewise.
Vocabulary hostile_vocabulary(std::string_view* input) {
  const std::string_view header = take(input);
  const auto byte = [&](size_t i) { return i < header.size() ? static_cast<int8_t>(header[i]) : int8_t{0}; };
  const bool llama = (byte(0) & 1) != 0;
  Vocabulary vocabulary = llama ? kvasir::testing::spm_vocabulary() : kvasir::testing::bpe_vocabulary();
  if ((byte(0) & 2) != 0) vocabulary.pieces.clear(), vocabulary.types.clear(), vocabulary.scores.clear();
  vocabulary.bos = byte(1);
  vocabulary.eos = byte(2);
  vocabulary.unk = byte(3);
  vocabulary.add_bos = (byte(0) & 4) != 0;
  vocabulary.add_space_prefix = (byte(0) & 8) != 0;
  for (std::string_view piece = take(input); !piece.empty(); piece = take(input)) {
    vocabulary.pieces.emplace_back(piece.substr(1));
    vocabulary.types.push_back(piece[0] % 8);
    if (llama) vocabulary.scores.push_back(piece[0]);
  }
  for (std::string_view merge = take(input); !merge.empty(); merge = take(input)) vocabulary.merges.emplace_back(merge);
  return vocabulary;
}

void try_vocabulary(std::string_view input) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!Tokenizer::create(hostile_vocabulary(&input), &tokenizer).ok()) return;
  std::vector<int32_t> tokens;
  std::string text;
  if (!tokenizer->encode(input, true, (input.size() & 1) != 0, &tokens).ok()) return;
  require(tokenizer->decode(tokens, true, &text).ok());
  tokens.push_back(static_cast<int32_t>(tokenizer->vocabulary().pieces.size()));
  require(!tokenizer->decode(tokens, true, &text).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {
    try_vocabulary(rest);
  } else {
    check_text(built_in(data[0] / 4u), (data[0] & 2) != 0, rest);
  }
  return 0;
}
