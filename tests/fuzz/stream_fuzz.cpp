// SPDX-License-Identifier: MIT
//
// UTF-8 from any bytes in any pieces: the stream keeps back at most an unfinished character, loses nothing and cuts no
// character; and every pre-tokenizer splits any text into words without gaps. Input: rule, then pieces.
#include <vector>

#include "fuzz/bytes.h"
#include "text/pretokenizer.h"
#include "text/stream.h"
#include "text/utf8.h"

namespace {

using namespace kvasir;

const Pretokenizer& pretokenizer(uint32_t index) {
  static const auto* all = [] {
    auto* made = new std::vector<std::unique_ptr<Pretokenizer>>;
    for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "starcoder", "falcon", "deepseek-coder", "deepseek-llm"}) {
      KV_REQUIRE(Pretokenizer::create(*find_pretokenizer_rule(name), &made->emplace_back()).ok());
    }
    return made;
  }();
  return *(*all)[index % all->size()];
}

void check_words(const Pretokenizer& rule, std::string_view text) {
  std::vector<std::string_view> words;
  KV_REQUIRE(rule.split(text, &words).ok());
  const char* next = text.data();
  for (const std::string_view word : words) {
    KV_REQUIRE(!word.empty() && word.data() == next);
    next += word.size();
  }
  KV_REQUIRE(next == text.data() + text.size());
}

// The characters of a text, broken bytes as characters of one byte.
void check_characters(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = utf8_character_length(rest);
    KV_REQUIRE(length <= 4 && length <= rest.size());
    if (length > 0) {
      std::string again;
      utf8_append(utf8_decode(rest.substr(0, length)), &again);
      KV_REQUIRE(again == rest.substr(0, length));
    }
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  KV_REQUIRE(quote_bytes(text).size() <= 4 * 40 + 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Bytes bytes(data, size);
  const Pretokenizer& rule = pretokenizer(bytes.u8());
  Utf8Stream stream;
  std::string all;
  std::string streamed;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.text();
    all += piece;
    streamed += stream.push(piece);
    KV_REQUIRE(streamed.size() <= all.size() && all.size() - streamed.size() == utf8_unfinished_tail(all));
    KV_REQUIRE(all.size() - streamed.size() <= 3);
    if (bytes.u8() == 255) streamed += stream.flush();
    if (streamed.size() == all.size()) streamed.clear(), all.clear();
  }
  streamed += stream.flush();
  KV_REQUIRE(streamed == all);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_words(rule, text);
  check_characters(text);
  return 0;
}
