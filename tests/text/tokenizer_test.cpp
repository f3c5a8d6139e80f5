// SPDX-License-Identifier: MIT
//
// Encoding and decoding with vocabularies small enough to work out every token by hand; special tokens (case P17) and
// bytes that are not UTF-8 (case P18).
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "text/vocabularies.h"

namespace kvasir {
namespace {

using testing::add_token;
using testing::bpe_vocabulary;
using testing::byte_vocabulary;
using testing::kEndToken;
using testing::kFirstByteToken;
using testing::make_tokenizer;
using testing::spm_vocabulary;
using Tokens = std::vector<int32_t>;

Tokens encode(const Tokenizer& tokenizer, std::string_view text, bool add_special = false, bool parse_special = false) {
  Tokens tokens;
  const Status status = tokenizer.encode(text, add_special, parse_special, &tokens);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokens;
}

std::string decode(const Tokenizer& tokenizer, const Tokens& tokens, bool render_special = false) {
  std::string text;
  const Status status = tokenizer.decode(tokens, render_special, &text);
  EXPECT_TRUE(status.ok()) << status.message();
  return text;
}

Tokens byte_tokens(std::string_view text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back(kFirstByteToken + static_cast<uint8_t>(c));
  return tokens;
}

TEST(SpmTokenizer, JoinsTheHighestScoreFirst) {
  const auto tokenizer = make_tokenizer(spm_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  // _abc: bc (-1), then _a (-3) before abc (-4); "_abc" is no token.
  EXPECT_EQ(encode(*tokenizer, "abc"), (Tokens{266, 265}));
  // Among equals the leftmost: _ a a a -> _a first, then aa.
  EXPECT_EQ(encode(*tokenizer, "aaa"), (Tokens{266, 268}));
  // b, then " " + "a": _b is no token; c has none to join with.
  EXPECT_EQ(encode(*tokenizer, "b ac"), (Tokens{260, 262, 266, 263}));
  // Bytes for what has no token, whole characters where they have one.
  EXPECT_EQ(encode(*tokenizer, "\xC3\xA9z"), (Tokens{260, 271, kFirstByteToken + 'z'}));
  EXPECT_EQ(encode(*tokenizer, ""), Tokens{});
  EXPECT_EQ(encode(*tokenizer, "  "), (Tokens{269, 260}));
}

TEST(SpmTokenizer, WithoutSpacePrefix) {
  Vocabulary vocabulary = spm_vocabulary();
  vocabulary.add_space_prefix = false;
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "abc"), (Tokens{267}));  // bc, then a + bc
  EXPECT_EQ(encode(*tokenizer, "aaaaa"), (Tokens{268, 268, 261}));
  EXPECT_EQ(decode(*tokenizer, {266, 261}), " aa");
}

TEST(SpmTokenizer, TheMarkItselfIsNotASpace) {
  const auto tokenizer = make_tokenizer(spm_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  Tokens expected{260};
  for (const int32_t token : byte_tokens("\xE2\x96\x81")) expected.push_back(token);
  EXPECT_EQ(encode(*tokenizer, "\xE2\x96\x81"), expected);
  EXPECT_EQ(decode(*tokenizer, expected), "\xE2\x96\x81");
}

TEST(SpmTokenizer, OneLeadingSpaceIsRemovedAtDefinedPlaces) {
  const auto tokenizer = make_tokenizer(spm_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(decode(*tokenizer, {266, 266}), "a a");
  EXPECT_EQ(decode(*tokenizer, {1, 266, kEndToken, 266}), "aa");  // after control tokens, rendered or not
  EXPECT_EQ(decode(*tokenizer, {1, 266, kEndToken, 266}, true), "<s>a<end>a");
  EXPECT_EQ(decode(*tokenizer, {269, 266}), "  a");  // one, not all
  EXPECT_EQ(decode(*tokenizer, {270, 266}), "\n\na");
  std::string_view piece;
  ASSERT_TRUE(tokenizer->piece(266, false, &piece).ok());
  EXPECT_EQ(piece, " a");
}

TEST(SpmTokenizer, WithoutByteTokens) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  add_token(&vocabulary, "<unk>", kTokenUnknown);
  add_token(&vocabulary, "a");
  vocabulary.unk = 0;
  const auto lossy = make_tokenizer(vocabulary);
  ASSERT_NE(lossy, nullptr);
  EXPECT_EQ(encode(*lossy,
                   "a\xC3\xA9"
                   "a"),
            (Tokens{1, 0, 1}));
  vocabulary.unk = -1;
  const auto strict = make_tokenizer(vocabulary);
  ASSERT_NE(strict, nullptr);
  Tokens tokens{7};
  const Status status = strict->encode(
      "a\xC3\xA9"
      "a",
      false, false, &tokens);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(),
               "the vocabulary has no token for '\\xC3\\xA9' at byte 1, no byte tokens for it and no unknown token");
  EXPECT_EQ(tokens, (Tokens{7}));
}

TEST(BpeTokenizer, AppliesTheLowestRankFirst) {
  const auto tokenizer = make_tokenizer(bpe_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "abc"), (Tokens{258}));       // b c, then a bc
  EXPECT_EQ(encode(*tokenizer, "aab"), (Tokens{'a', 256}));  // a b (1) before a a (4)
  EXPECT_EQ(encode(*tokenizer, "aaaaa"), (Tokens{263, 263, 'a'}));
  EXPECT_EQ(encode(*tokenizer, " abc"), (Tokens{' ', 258}));  // abc (2) before _ a (3); nothing joins _ and abc
  EXPECT_EQ(encode(*tokenizer, "a ab"), (Tokens{'a', ' ', 256}));
  EXPECT_EQ(encode(*tokenizer, " a"), (Tokens{259}));
  EXPECT_EQ(decode(*tokenizer, {259, 258}), " aabc");
}

TEST(BpeTokenizer, WholeWordsFirstWhereTheRuleSaysSo) {
  const auto tokenizer = make_tokenizer(bpe_vocabulary("llama3"));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, " abc"), (Tokens{260}));  // no merge makes it, but it is a token
  EXPECT_EQ(encode(*tokenizer, " abca"), (Tokens{' ', 258, 'a'}));
}

TEST(BpeTokenizer, RefusesAByteItHasNoTokenFor) {
  Vocabulary vocabulary = bpe_vocabulary();
  vocabulary.pieces[0x0B] = "filler";
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  Tokens tokens{7};
  const Status status = tokenizer->encode("ab \x0B", false, false, &tokens);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "the vocabulary has no token for byte 0x0B, which the text has at byte 3");
  EXPECT_EQ(tokens, (Tokens{7}));
}

TEST(BpeTokenizer, UserDefinedTokensAreSpelledAsTheyAre) {
  Vocabulary vocabulary = bpe_vocabulary();
  vocabulary.types[0xFC] = kTokenUserDefined;  // the alphabet's character for 0xFC is U+00FC
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "T\xC3\xBCr"), (Tokens{'T', 0xFC, 'r'}));
  EXPECT_EQ(decode(*tokenizer, {'T', 0xFC, 'r'}), "T\xC3\xBCr");
}

// Case P17.
TEST(SpecialTokens, TextIsTextByDefault) {
  const auto tokenizer = make_tokenizer(byte_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "a<end>b";
  const Tokens plain = byte_tokens(text);
  const Tokens parsed{kFirstByteToken + 'a', kEndToken, kFirstByteToken + 'b'};
  EXPECT_EQ(encode(*tokenizer, text), plain);
  EXPECT_EQ(encode(*tokenizer, text, false, true), parsed);
  EXPECT_EQ(decode(*tokenizer, plain), text);
  EXPECT_EQ(decode(*tokenizer, parsed, true), text);
  EXPECT_EQ(decode(*tokenizer, parsed, false), "ab");
  EXPECT_EQ(encode(*tokenizer, "<s><0x41>"), byte_tokens("<s><0x41>"));
}

TEST(SpecialTokens, ControlPiecesAreOutOfReachOfJoins) {
  Vocabulary vocabulary = spm_vocabulary();
  add_token(&vocabulary, "<", kTokenNormal, -1);
  add_token(&vocabulary, "<s", kTokenNormal, -1);
  add_token(&vocabulary, "ca", kTokenUnused, 0);
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "<s>"), (Tokens{260, 273, kFirstByteToken + '>'}));
  EXPECT_EQ(encode(*tokenizer, "ca"), (Tokens{260, 263, 261}));
}

TEST(SpecialTokens, ControlTokensAreOutOfReachOfMerges) {
  Vocabulary vocabulary = bpe_vocabulary("llama-bpe");
  vocabulary.types[256] = kTokenControl;  // "ab", which merge 1 makes
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "ab"), (Tokens{'a', 'b'}));
  EXPECT_EQ(encode(*tokenizer, "ab", false, true), (Tokens{256}));
  EXPECT_EQ(encode(*tokenizer, "abc"), (Tokens{258}));
}

TEST(SpecialTokens, AddedAsTheVocabularyAsks) {
  Vocabulary vocabulary = spm_vocabulary();
  vocabulary.add_eos = true;
  const auto both = make_tokenizer(vocabulary);
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(encode(*both, "a", true), (Tokens{1, 266, 2}));
  EXPECT_EQ(encode(*both, "", true), (Tokens{1, 2}));
  EXPECT_EQ(encode(*both, "<s>a", true, true), (Tokens{1, 1, 266, 2}));
  vocabulary.add_bos = vocabulary.add_eos = false;
  const auto none = make_tokenizer(vocabulary);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(encode(*none, "a", true), (Tokens{266}));
}

TEST(SpecialTokens, UserDefinedAlwaysLeftmostLongest) {
  Vocabulary vocabulary = byte_vocabulary();
  add_token(&vocabulary, "xy", kTokenUserDefined);   // 260
  add_token(&vocabulary, "xyz", kTokenUserDefined);  // 261
  add_token(&vocabulary, "yzw", kTokenUserDefined);  // 262
  add_token(&vocabulary, "xyzvv", kTokenControl);    // 263
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  const int32_t w = kFirstByteToken + 'w', v = kFirstByteToken + 'v';
  EXPECT_EQ(encode(*tokenizer, "xyzw"), (Tokens{261, w}));
  EXPECT_EQ(encode(*tokenizer, "yzwxy"), (Tokens{262, 260}));
  EXPECT_EQ(encode(*tokenizer, "xyzvv"), (Tokens{261, v, v}));
  EXPECT_EQ(encode(*tokenizer, "xyzvv", false, true), (Tokens{263}));
  EXPECT_EQ(encode(*tokenizer, "xyzv", false, true), (Tokens{261, v}));
}

TEST(SpecialTokens, EndOfGeneration) {
  Vocabulary vocabulary = byte_vocabulary();
  add_token(&vocabulary, "<|im_end|>", kTokenControl);  // 260
  add_token(&vocabulary, "<|eot_id|>", kTokenNormal);   // 261: only looks like one
  vocabulary.eot = kEndToken;
  const auto tokenizer = make_tokenizer(std::move(vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  for (int32_t token = -1; token <= 262; ++token) {
    const bool ends = token == 2 || token == kEndToken || token == 260;
    EXPECT_EQ(tokenizer->is_end_of_generation(token), ends) << token;
    EXPECT_EQ(tokenizer->is_special(token), token == 0 || token == 1 || ends) << token;
  }
}

// Case P18.
TEST(AnyBytes, ComeBackFromEveryKind) {
  const std::string_view texts[] = {"\xE2\x80",   "\xF0\x9F",
                                    "\xC0\xAF",   "\xED\xA0\x80",
                                    "\xFF",       std::string_view("\0", 1),
                                    "",           std::string_view("a\0\0b", 4),
                                    " \xE2 a\x80"};
  for (const Vocabulary& vocabulary :
       {byte_vocabulary(), spm_vocabulary(), bpe_vocabulary(), bpe_vocabulary("qwen2")}) {
    const auto tokenizer = make_tokenizer(vocabulary);
    ASSERT_NE(tokenizer, nullptr);
    for (const std::string_view text : texts) EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text)), text);
  }
  const auto bytes = make_tokenizer(byte_vocabulary());
  EXPECT_EQ(encode(*bytes, texts[0]), byte_tokens(texts[0]));
}

TEST(AnyBytes, AMegabyteOfOneByte) {
  for (const Vocabulary& vocabulary : {spm_vocabulary(), bpe_vocabulary(), bpe_vocabulary("deepseek-llm")}) {
    const auto tokenizer = make_tokenizer(vocabulary);
    ASSERT_NE(tokenizer, nullptr);
    for (const char byte : {'a', '\x80', ' '}) {
      const std::string text(1 << 20, byte);
      EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, text, false, true), true), text) << static_cast<int>(byte);
    }
  }
}

TEST(BadArguments, TokensOutsideTheVocabulary) {
  const auto tokenizer = make_tokenizer(byte_vocabulary());
  ASSERT_NE(tokenizer, nullptr);
  for (const int32_t token : {-1, 260, INT32_MAX, INT32_MIN}) {
    std::string_view piece = "unchanged";
    EXPECT_EQ(tokenizer->piece(token, true, &piece).code(), KV_INVALID_ARGUMENT);
    EXPECT_EQ(piece, "unchanged");
    std::string text = "unchanged";
    const Tokens tokens{70, token};
    const Status status = tokenizer->decode(tokens, true, &text);
    EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), "token " + std::to_string(token) + " is outside the vocabulary of 260");
    EXPECT_EQ(text, "unchanged");
  }
}

TEST(Threads, ShareOneTokenizer) {
  const auto tokenizer = make_tokenizer(bpe_vocabulary("llama-bpe"));
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "abc  abc's 1234\n\n abc<end>\x80";
  const Tokens expected = encode(*tokenizer, text, true, true);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        Tokens tokens;
        if (!tokenizer->encode(text, true, true, &tokens).ok() || tokens != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kvasir
