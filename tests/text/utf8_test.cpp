// SPDX-License-Identifier: MIT
//
// utf8.h against the whole range of code points and the classic malformed forms.
#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/byte_alphabet.h"

namespace kvasir {
namespace {

TEST(Utf8, EveryCodePointHasOneForm) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    std::string text;
    utf8_append(code_point, &text);
    const size_t expected = surrogate              ? 0
                            : code_point < 0x80    ? 1
                            : code_point < 0x800   ? 2
                            : code_point < 0x10000 ? 3
                                                   : 4;
    ASSERT_EQ(utf8_character_length(text), expected) << code_point;
    if (surrogate) continue;
    ASSERT_EQ(utf8_decode(text), code_point);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(utf8_character_length(std::string_view(text).substr(0, cut)), 0u) << code_point;
      ASSERT_EQ(utf8_unfinished_tail(std::string_view(text).substr(0, cut)), cut) << code_point;
    }
    ASSERT_EQ(utf8_unfinished_tail(text), 0u) << code_point;
  }
}

TEST(Utf8, MalformedFormsAreNoCharacters) {
  const std::string_view forms[] = {"\x80",
                                    "\xBF",
                                    "\xC0\xAF",
                                    "\xC1\xBF",
                                    "\xE0\x80\xAF",
                                    "\xE0\x9F\xBF",
                                    "\xED\xA0\x80",
                                    "\xF0\x8F\xBF\xBF",
                                    "\xF4\x90\x80\x80",
                                    "\xF5\x80\x80\x80",
                                    "\xFF",
                                    "\xE2\x28\xA1",
                                    ""};
  for (const std::string_view form : forms) {
    EXPECT_EQ(utf8_character_length(form), 0u) << quote_bytes(form);
    EXPECT_EQ(utf8_unfinished_tail(form), 0u) << quote_bytes(form);
  }
}

TEST(Utf8, QuotesForSentences) {
  EXPECT_EQ(quote_bytes("a\n\x80"), "a\\x0A\\x80");
  EXPECT_EQ(quote_bytes(std::string(50, 'x')), std::string(40, 'x') + "...");
}

TEST(ByteAlphabet, SpellsEveryByteOnce) {
  EXPECT_EQ(alphabet_character('!'), "!");
  EXPECT_EQ(alphabet_character(' '), "\xC4\xA0");   // U+0120
  EXPECT_EQ(alphabet_character('\n'), "\xC4\x8A");  // U+010A
  EXPECT_EQ(alphabet_character(0x7F), "\xC4\xA1");  // U+0121
  EXPECT_EQ(alphabet_character(0xAD), "\xC5\x83");  // U+0143, the last
  EXPECT_EQ(alphabet_character(0xFF), "\xC3\xBF");  // itself
  std::string all;
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) all += alphabet_character(static_cast<uint8_t>(byte));
  ASSERT_TRUE(read_alphabet(all, &bytes));
  ASSERT_EQ(bytes.size(), 256u);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(static_cast<uint8_t>(bytes[static_cast<size_t>(byte)]), byte);
  for (const std::string_view foreign : {" ", "a b", "\xC5\x84", "\x80", "\xE2\x96\x81"}) {
    EXPECT_FALSE(read_alphabet(foreign, &bytes)) << quote_bytes(foreign);
  }
}

}  // namespace
}  // namespace kvasir
