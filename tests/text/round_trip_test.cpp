// SPDX-License-Identifier: MIT
//
// Property: any bytes in, the same bytes out, for every kind of vocabulary.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "text/tokenizer.h"
#include "text/vocabularies.h"

namespace kvasir {
namespace {

// Random bytes mixed with what the rules treat specially.
rc::Gen<std::string> any_text() {
  const auto part =
      rc::gen::oneOf(rc::gen::element<std::string>("a", "ab", "abc", " ", "  ", "\n", "\r\n", "\t", "'s", "'VE",
                                                   "12345", ".,!", "<end>", "<unk>", "<s>", "<tab>", "<0x41>",
                                                   "\xC3\xA9", "\xE2\x96\x81", "\xE3\x80\x80", "\xE6\x88\x91",
                                                   "\xF0\x9F\xA6\x99", "\xE2\x80", "\xED\xA0\x80", "\xC2\x85"),
                     rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(part), [](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& piece : parts) text += piece;
    return text;
  });
}

std::vector<std::unique_ptr<Tokenizer>> all_kinds() {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(testing::make_tokenizer(testing::byte_vocabulary()));
  tokenizers.push_back(testing::make_tokenizer(testing::spm_vocabulary()));
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "starcoder", "falcon", "deepseek-coder", "deepseek-llm"}) {
    tokenizers.push_back(testing::make_tokenizer(testing::bpe_vocabulary(pre)));
  }
  return tokenizers;
}

RC_GTEST_PROP(RoundTrip, AnyBytes, ()) {
  static const auto tokenizers = all_kinds();
  const std::string text = *any_text();
  for (const auto& tokenizer : tokenizers) {
    for (const bool parse_special : {false, true}) {
      for (const bool add_special : {false, true}) {
        std::vector<int32_t> tokens;
        std::string decoded;
        RC_ASSERT(tokenizer->encode(text, add_special, parse_special, &tokens).ok());
        std::vector<int32_t> body = tokens;
        if (add_special && tokenizer->vocabulary().add_bos) body.erase(body.begin());
        RC_ASSERT(tokenizer->decode(body, parse_special, &decoded).ok());
        RC_ASSERT(decoded == text);
        // Text that was not parsed comes back from under bos as well.
        if (parse_special) continue;
        RC_ASSERT(tokenizer->decode(tokens, false, &decoded).ok());
        RC_ASSERT(decoded == text);
      }
    }
  }
}

}  // namespace
}  // namespace kvasir
