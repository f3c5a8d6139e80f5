// SPDX-License-Identifier: MIT
//
// Hostile and odd vocabularies: each is refused with a sentence that has the value in it.
#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "text/vocabularies.h"

namespace kvasir {
namespace {

using testing::add_token;
using testing::bpe_vocabulary;
using testing::spm_vocabulary;

void expect_refused(Vocabulary vocabulary, kv_status code, const std::string& sentence) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = Tokenizer::create(std::move(vocabulary), &tokenizer);
  EXPECT_EQ(status.code(), code) << sentence;
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(tokenizer, nullptr);
}

Vocabulary changed(Vocabulary vocabulary, const std::function<void(Vocabulary*)>& change) {
  change(&vocabulary);
  return vocabulary;
}

TEST(Vocabulary, SizesMustAgree) {
  const auto spm = [](const auto& change) { return changed(spm_vocabulary(), change); };
  expect_refused(Vocabulary{}, KV_UNSUPPORTED, "tokenizer model '' is not known (known: llama, gpt2)");
  expect_refused(spm([](Vocabulary* v) { v->model = "bert"; }), KV_UNSUPPORTED,
                 "tokenizer model 'bert' is not known (known: llama, gpt2)");
  expect_refused(spm([](Vocabulary* v) { v->pieces.clear(); }), KV_CORRUPT, "the vocabulary has no tokens");
  expect_refused(spm([](Vocabulary* v) { v->types.pop_back(); }), KV_CORRUPT,
                 "the vocabulary has 272 tokens but 271 token types");
  expect_refused(spm([](Vocabulary* v) { v->scores.push_back(0); }), KV_CORRUPT,
                 "the vocabulary has 272 tokens but 273 scores");
  expect_refused(spm([](Vocabulary* v) { v->scores.clear(); }), KV_CORRUPT,
                 "the vocabulary has no scores, which tokenizer model 'llama' needs");
}

TEST(Vocabulary, SpecialIdsMustExist) {
  const auto spm = [](const auto& change) { return changed(spm_vocabulary(), change); };
  expect_refused(spm([](Vocabulary* v) { v->eos = 272; }), KV_CORRUPT,
                 "the eos token is 272, but the vocabulary has 272 tokens");
  expect_refused(spm([](Vocabulary* v) { v->pad = -2; }), KV_CORRUPT,
                 "the pad token is -2, but the vocabulary has 272 tokens");
  expect_refused(spm([](Vocabulary* v) { v->bos = -1; }), KV_CORRUPT,
                 "the vocabulary asks for a bos token but names none");
  expect_refused(spm([](Vocabulary* v) { v->add_eos = true, v->eos = -1; }), KV_CORRUPT,
                 "the vocabulary asks for an eos token but names none");
}

TEST(Vocabulary, TokensAreChecked) {
  const auto spm = [](const auto& change) { return changed(spm_vocabulary(), change); };
  expect_refused(spm([](Vocabulary* v) { v->types[7] = 7; }), KV_CORRUPT, "token 7 has type 7, which is not known");
  expect_refused(spm([](Vocabulary* v) { v->types[7] = -1; }), KV_CORRUPT, "token 7 has type -1, which is not known");
  expect_refused(spm([](Vocabulary* v) { v->scores[9] = NAN; }), KV_CORRUPT, "the score of token 9 is not finite");
  expect_refused(spm([](Vocabulary* v) { v->scores[9] = INFINITY; }), KV_CORRUPT, "the score of token 9 is not finite");
  expect_refused(spm([](Vocabulary* v) { v->pieces[270] = "a"; }), KV_CORRUPT, "tokens 261 and 270 are both 'a'");
  expect_refused(spm([](Vocabulary* v) { v->pieces[5] = "<0x0g>"; }), KV_CORRUPT,
                 "byte token 5 is '<0x0g>', not of the form <0xNN>");
  expect_refused(spm([](Vocabulary* v) { v->pieces[261].assign(65537, 'x'); }), KV_CORRUPT,
                 "token 261 is 65537 bytes long, more than 65536");
  expect_refused(spm([](Vocabulary* v) { v->pieces[259].assign(1025, 'x'); }), KV_CORRUPT,
                 "token 259 is 1025 bytes long, more than 1024");
}

TEST(Vocabulary, EmptyPiecesArePlaceholders) {
  const auto tokenizer = testing::make_tokenizer(changed(spm_vocabulary(), [](Vocabulary* v) {
    for (const int32_t type : {kTokenNormal, kTokenUserDefined, kTokenControl, kTokenUnused}) add_token(v, "", type);
  }));
  ASSERT_NE(tokenizer, nullptr);
  std::vector<int32_t> tokens;
  ASSERT_TRUE(tokenizer->encode("ab", false, true, &tokens).ok());
  EXPECT_EQ(tokens, (std::vector<int32_t>{260, 264}));
}

TEST(Vocabulary, ByteLevelNeedsMergesAndAKnownSplit) {
  const auto bpe = [](const auto& change) { return changed(bpe_vocabulary(), change); };
  expect_refused(bpe([](Vocabulary* v) { v->merges.clear(); }), KV_CORRUPT,
                 "the vocabulary has no merges, which tokenizer model 'gpt2' needs");
  expect_refused(bpe([](Vocabulary* v) { v->pre.clear(); }), KV_UNSUPPORTED,
                 "the vocabulary names no pre-tokenizer (tokenizer.ggml.pre), and how to split text cannot be guessed");
  const std::string known =
      " is not known (known: gpt-2, llama-bpe, qwen2, starcoder, falcon, deepseek-coder, deepseek-llm)";
  expect_refused(bpe([](Vocabulary* v) { v->pre = "default"; }), KV_UNSUPPORTED, "pre-tokenizer 'default'" + known);
  expect_refused(bpe([](Vocabulary* v) { v->pre = "gpt-2x"; }), KV_UNSUPPORTED, "pre-tokenizer 'gpt-2x'" + known);
}

TEST(Vocabulary, MergesAreChecked) {
  const auto with_merge = [](std::string merge) {
    return changed(bpe_vocabulary(), [&](Vocabulary* v) { v->merges.push_back(std::move(merge)); });
  };
  for (const std::string merge : {"", "ab", " ", "ab ", " ab"}) {
    expect_refused(with_merge(merge), KV_CORRUPT, "merge 5 is '" + merge + "', not two pieces with a space between");
  }
  expect_refused(with_merge("a zz"), KV_CORRUPT, "merge 5 needs the token 'zz', which the vocabulary does not have");
  expect_refused(with_merge("zz a"), KV_CORRUPT, "merge 5 needs the token 'zz', which the vocabulary does not have");
  expect_refused(with_merge("b a"), KV_CORRUPT, "merge 5 needs the token 'ba', which the vocabulary does not have");
}

TEST(Vocabulary, DefaultsFollowTheModel) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.set_defaults();
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_EQ(vocabulary.unk, 0);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_TRUE(vocabulary.add_space_prefix);
  EXPECT_FALSE(vocabulary.add_eos);
  for (const auto& [pre, add_bos] :
       {std::pair{"gpt-2", false}, {"llama-bpe", true}, {"llama3", true}, {"qwen2", false}}) {
    vocabulary = {};
    vocabulary.model = "gpt2";
    vocabulary.pre = pre;
    vocabulary.set_defaults();
    EXPECT_EQ(vocabulary.bos, -1) << pre;
    EXPECT_EQ(vocabulary.add_bos, add_bos) << pre;
    EXPECT_FALSE(vocabulary.add_space_prefix) << pre;
  }
}

}  // namespace
}  // namespace kvasir
