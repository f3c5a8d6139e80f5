// SPDX-License-Identifier: MIT
//
// Split rules on texts small enough to split by hand, and long runs, which must not be quadratic (a quadratic rule runs
// into the match limit, an error, long before it runs out of patience).
#include "text/pretokenizer.h"

#include <gtest/gtest.h>

namespace kvasir {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view rule_name, std::string_view text) {
  const PretokenizerRule* rule = find_pretokenizer_rule(rule_name);
  if (rule == nullptr) return {"unknown rule"};
  std::unique_ptr<Pretokenizer> pretokenizer;
  std::vector<std::string_view> words;
  Status status = Pretokenizer::create(*rule, &pretokenizer);
  if (status.ok()) status = pretokenizer->split(text, &words);
  if (!status.ok()) return {status.message()};
  return {words.begin(), words.end()};
}

TEST(Pretokenizer, Gpt2) {
  EXPECT_EQ(split("gpt-2", "I've  12345 cats,\n\nDON'T"),
            (Words{"I", "'ve", " ", " 12345", " cats", ",", "\n", "\n", "DON", "'", "T"}));
  EXPECT_EQ(split("gpt-2", "a   "), (Words{"a", "   "}));
  EXPECT_EQ(split("gpt-2", "\tx"), (Words{"\t", "x"}));
  EXPECT_EQ(split("gpt-2", ""), Words{});
}

TEST(Pretokenizer, LlamaBpe) {
  EXPECT_EQ(split("llama-bpe", "I'VE  12345 cats,\n\nx"),
            (Words{"I", "'VE", " ", " ", "123", "45", " cats", ",\n\n", "x"}));
  EXPECT_EQ(split("llama-bpe", "a \n \n  b"), (Words{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(split("llama-bpe", "(x) $y"), (Words{"(x", ")", " $", "y"}));
}

TEST(Pretokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_EQ(split("qwen2", "a 12"), (Words{"a", " ", "1", "2"}));
  EXPECT_EQ(split("qwen2", "it's"), (Words{"it", "'s"}));
}

TEST(Pretokenizer, Starcoder) {
  EXPECT_EQ(split("starcoder", "ab 12 c"), (Words{"ab", " ", "1", "2", " c"}));
  EXPECT_EQ(split("smollm", "ab 12 c"), (Words{"ab", " ", "1", "2", " c"}));
}

TEST(Pretokenizer, Falcon) {
  EXPECT_EQ(split("falcon", "x+=1 12345."), (Words{"x", "+=", "1", " ", "123", "45", "."}));
  EXPECT_EQ(split("falcon", "1234567"), (Words{"123", "456", "7"}));
}

TEST(Pretokenizer, DeepseekCoder) {
  EXPECT_EQ(split("deepseek-coder", "def f(x):\n  12"), (Words{"def", " f", "(", "x", "):", "\n", "  ", "1", "2"}));
}

TEST(Pretokenizer, DeepseekLlm) {
  EXPECT_EQ(split("deepseek-llm", "Hello world 123, \xE6\x88\x91\xE6\x83\xB3"),
            (Words{"Hello", " world", " ", "123", ",", " ", "\xE6\x88\x91\xE6\x83\xB3"}));
  EXPECT_EQ(split("deepseek-llm", "a  \n"), (Words{"a", "  ", "\n"}));
}

TEST(Pretokenizer, SpaceIsUnicodesWhiteSpace) {
  EXPECT_EQ(split("gpt-2",
                  "a\xC2\xA0\xE3\x80\x80"
                  "b"),
            (Words{"a", "\xC2\xA0", "\xE3\x80\x80", "b"}));
  // U+180E ceased to be a space in Unicode 6.3.
  EXPECT_EQ(split("gpt-2",
                  "a \xE1\xA0\x8E"
                  "b"),
            (Words{"a", " \xE1\xA0\x8E", "b"}));
}

TEST(Pretokenizer, OtherBytesAreWordsOfTheirOwn) {
  EXPECT_EQ(split("gpt-2", "ab\x80\x80 c\xE2\x82"), (Words{"ab", "\x80\x80", " c", "\xE2\x82"}));
  EXPECT_EQ(split("llama-bpe",
                  "\xFF"
                  "a"),
            (Words{"\xFF", "a"}));
  EXPECT_EQ(split("gpt-2", std::string_view("a\0b", 3)), (Words{"a", std::string(1, '\0'), "b"}));
}

TEST(Pretokenizer, LongRunsStayLinear) {
  constexpr size_t kBytes = 1 << 17;
  std::string blank_lines;
  std::string spaced_lines;
  while (blank_lines.size() < kBytes) blank_lines += " \n";
  while (spaced_lines.size() < kBytes) spaced_lines += std::string(1000, ' ') + "a";
  const std::string texts[] = {std::string(kBytes, 'a'),
                               std::string(kBytes, ' '),
                               std::string(kBytes, ' ') + "a",
                               std::string(kBytes, '\n'),
                               blank_lines,
                               spaced_lines,
                               "\n" + std::string(kBytes, ' ') + "a",
                               std::string(kBytes, '7')};
  for (const char* rule : {"gpt-2", "llama-bpe", "qwen2", "starcoder", "falcon", "deepseek-coder", "deepseek-llm"}) {
    for (const std::string& text : texts) {
      size_t bytes = 0;
      for (const std::string& word : split(rule, text)) bytes += word.size();
      EXPECT_EQ(bytes, text.size()) << rule << " on " << text.substr(0, 8);
    }
  }
}

TEST(Pretokenizer, NamesAreExact) {
  for (const char* name : {"", "gpt2", "GPT-2", "default", "llama", "qwen2 "}) {
    EXPECT_EQ(find_pretokenizer_rule(name), nullptr) << name;
  }
  EXPECT_EQ(find_pretokenizer_rule("llama3"), find_pretokenizer_rule("llama-bpe"));
}

}  // namespace
}  // namespace kvasir
