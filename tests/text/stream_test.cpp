// SPDX-License-Identifier: MIT
//
// Case P19: half a character per token.
#include "text/stream.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "text/utf8.h"
#include "text/vocabularies.h"

namespace kvasir {
namespace {

using testing::byte_vocabulary;
using testing::kEndToken;
using testing::kFirstByteToken;
using Chunks = std::vector<std::string>;

// The chunk of each byte, pushed as a byte token, and of the flush.
Chunks stream_bytes(std::string_view bytes) {
  const auto tokenizer = testing::make_tokenizer(byte_vocabulary());
  TextStream stream(*tokenizer);
  Chunks chunks;
  for (const char byte : bytes) {
    std::string_view text;
    EXPECT_TRUE(stream.push(kFirstByteToken + static_cast<uint8_t>(byte), &text).ok());
    chunks.emplace_back(text);
  }
  chunks.emplace_back(stream.flush());
  return chunks;
}

TEST(TextStream, HoldsBackUntilTheCharacterIsWhole) {
  EXPECT_EQ(stream_bytes("\xF0\x9F\xA6\x99"), (Chunks{"", "", "", "\xF0\x9F\xA6\x99", ""}));
  EXPECT_EQ(stream_bytes("a\xC3\xA9"
                         "b"),
            (Chunks{"a", "", "\xC3\xA9", "b", ""}));
}

TEST(TextStream, NeverStallsOnWhatCannotBeCompleted) {
  EXPECT_EQ(stream_bytes("\x80"), (Chunks{"\x80", ""}));
  EXPECT_EQ(stream_bytes("\xC0\xAF"), (Chunks{"\xC0", "\xAF", ""}));
  EXPECT_EQ(stream_bytes("\xED\xA0\x80"), (Chunks{"", "\xED\xA0", "\x80", ""}));
  EXPECT_EQ(stream_bytes("\xE2\x82"
                         "a"),
            (Chunks{"", "",
                    "\xE2\x82"
                    "a",
                    ""}));
  EXPECT_EQ(stream_bytes("\xF0\x9F\xF0\x9F"), (Chunks{"", "", "\xF0\x9F", "", "\xF0\x9F"}));
}

TEST(TextStream, FlushGivesTheUnfinishedEndOnce) {
  const auto tokenizer = testing::make_tokenizer(byte_vocabulary());
  TextStream stream(*tokenizer);
  std::string_view text;
  ASSERT_TRUE(stream.push(kFirstByteToken + 0xE2, &text).ok());
  ASSERT_TRUE(stream.push(2, &text).ok());  // eos has no text
  EXPECT_EQ(text, "");
  EXPECT_EQ(stream.flush(), "\xE2");
  EXPECT_EQ(stream.flush(), "");
  ASSERT_TRUE(stream.push(kFirstByteToken + 'a', &text).ok());
  EXPECT_EQ(text, "a");
}

TEST(TextStream, ABadTokenChangesNothing) {
  const auto tokenizer = testing::make_tokenizer(byte_vocabulary());
  TextStream stream(*tokenizer, true);
  std::string_view text;
  ASSERT_TRUE(stream.push(kFirstByteToken + 0xC3, &text).ok());
  EXPECT_EQ(stream.push(4711, &text).code(), KV_INVALID_ARGUMENT);
  ASSERT_TRUE(stream.push(kFirstByteToken + 0xA9, &text).ok());
  EXPECT_EQ(text, "\xC3\xA9");
  ASSERT_TRUE(stream.push(kEndToken, &text).ok());
  EXPECT_EQ(text, "<end>");
}

// Whether some well-formed character of `text` has one of `cuts` inside.
bool cuts_a_character(std::string_view text, const std::set<size_t>& cuts) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t length = std::max<size_t>(1, utf8_character_length(text.substr(begin)));
    for (size_t inside = begin + 1; inside < begin + length; ++inside) {
      if (cuts.count(inside) > 0) return true;
    }
    begin += length;
  }
  return false;
}

RC_GTEST_PROP(Utf8Stream, ChunksAreTheBytesAndCutNoCharacter, (const std::vector<std::string>& pieces, bool emoji)) {
  Utf8Stream stream;
  std::string all;
  std::string streamed;
  std::set<size_t> cuts;
  const auto push = [&](std::string_view piece) {
    all += piece;
    streamed += stream.push(piece);
    cuts.insert(streamed.size());
    RC_ASSERT(all.size() - streamed.size() == utf8_unfinished_tail(all));
  };
  for (const std::string& piece : pieces) {
    push(piece);
    if (emoji) {
      push("\xF0\x9F");
      push("\xA6\x99");
    }
  }
  streamed += stream.flush();
  RC_ASSERT(streamed == all);
  RC_ASSERT(!cuts_a_character(all, cuts));
}

}  // namespace
}  // namespace kvasir
