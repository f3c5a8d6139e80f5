// SPDX-License-Identifier: MIT
//
// Text through the public API with case fixture F7 (256 byte tokens, bos, eos, one control token "<end>"): special
// tokens in user text (P17), bytes that are not UTF-8 and buffers that are too small (P18), half a character per token
// (P19).
#include <gtest/gtest.h>

#include <random>

#include "support/kv.h"
#include "support/random_model.h"
#include "text/utf8.h"
#include "text/vocabularies.h"

namespace kvasir {
namespace {

using test::Error;
using testing::kEndToken;
using testing::kFirstByteToken;
using Tokens = std::vector<int32_t>;

class TextApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelConfig config = testing::small_config();
    config.layers = 1;
    config.vocab = 260;
    const auto file = testing::random_gguf(config, KV_TYPE_F32, 1, false, [](testing::GgufWriter* writer) {
      const Vocabulary v = testing::byte_vocabulary();
      writer->string("tokenizer.ggml.model", v.model).strings("tokenizer.ggml.tokens", v.pieces);
      writer->f32s("tokenizer.ggml.scores", v.scores).i32s("tokenizer.ggml.token_type", v.types);
      writer->boolean("tokenizer.ggml.add_bos_token", true).boolean("tokenizer.ggml.add_space_prefix", false);
    });
    kv_model* model = nullptr;
    OK(kv_model_load_memory(runtime_.get(), file.data(), file.size(), nullptr, &model, &e));
    model_.reset(model);
    tokenizer_ = kv_model_tokenizer(model);
    ASSERT_NE(tokenizer_, nullptr);
  }

  Tokens tokenize(const std::string& text, uint32_t flags = 0) {
    Tokens tokens(text.size() + 2);
    size_t count = 0;
    EXPECT_EQ(kv_tokenize(tokenizer_, text.data(), text.size(), flags, tokens.data(), tokens.size(), &count, &e),
              KV_OK);
    tokens.resize(count);
    return tokens;
  }
  std::string detokenize(const Tokens& tokens, uint32_t flags = 0) {
    std::string text(8 * tokens.size() + 1, '\0');
    size_t length = 0;
    EXPECT_EQ(kv_detokenize(tokenizer_, tokens.data(), tokens.size(), flags, text.data(), text.size(), &length, &e),
              KV_OK);
    text.resize(length);
    return text;
  }
  static Tokens bytes_of(const std::string& text) {
    Tokens tokens;
    for (const char c : text) tokens.push_back(kFirstByteToken + static_cast<uint8_t>(c));
    return tokens;
  }

  // The chunk of each token, and of the flush.
  std::vector<std::string> stream(const Tokens& tokens, uint32_t flags = 0) {
    kv_text_stream* made = nullptr;
    EXPECT_EQ(kv_text_stream_create(tokenizer_, flags, &made, &e), KV_OK);
    const test::StreamPtr owner(made);
    std::vector<std::string> chunks;
    const char* text = nullptr;
    size_t length = 0;
    for (const int32_t token : tokens) {
      EXPECT_EQ(kv_text_stream_push(made, token, &text, &length, &e), KV_OK);
      chunks.emplace_back(text, length);
    }
    EXPECT_EQ(kv_text_stream_flush(made, &text, &length, &e), KV_OK);
    chunks.emplace_back(text, length);
    return chunks;
  }

  test::RuntimePtr runtime_ = test::make_runtime();
  test::ModelPtr model_;
  const kv_tokenizer* tokenizer_ = nullptr;
  Error e;
};

TEST_F(TextApi, P17TextIsTextByDefault) {
  const std::string text = "a<end>b";
  EXPECT_EQ(tokenize(text), bytes_of(text));
  EXPECT_EQ(detokenize(bytes_of(text)), text);
  const Tokens parsed = {kFirstByteToken + 'a', kEndToken, kFirstByteToken + 'b'};
  EXPECT_EQ(tokenize(text, KV_TOKENIZE_PARSE_SPECIAL), parsed);
  EXPECT_EQ(detokenize(parsed, KV_TEXT_SPECIAL), text);
  EXPECT_EQ(detokenize(parsed), "ab");
  Tokens begun = bytes_of("<s>");
  begun.insert(begun.begin(), 1);
  EXPECT_EQ(tokenize("<s>", KV_TOKENIZE_ADD_SPECIAL), begun);  // the model's own, not the user's
  EXPECT_EQ(tokenize("<s>", KV_TOKENIZE_ADD_SPECIAL | KV_TOKENIZE_PARSE_SPECIAL), (Tokens{1, 1}));
}

TEST_F(TextApi, P18AnyBytes) {
  const std::string texts[] = {"\xE2\x80",
                               "\xF0\x9F",
                               "\xC0\xAF",
                               "\xED\xA0\x80",
                               "\xFF",
                               std::string(1, '\0'),
                               "",
                               std::string("a\0b", 3),
                               std::string(1 << 20, '\x80')};
  for (const std::string& text : texts) {
    for (const uint32_t flags : {0U, uint32_t{KV_TOKENIZE_PARSE_SPECIAL}}) {
      EXPECT_EQ(tokenize(text, flags), bytes_of(text));
    }
    EXPECT_TRUE(detokenize(bytes_of(text)) == text) << text.size();
  }
  size_t count = 7;
  OK(kv_tokenize(tokenizer_, nullptr, 0, 0, nullptr, 0, &count, &e));  // nothing is nothing
  EXPECT_EQ(count, 0U);
}

TEST_F(TextApi, P18BuffersThatAreTooSmall) {
  const std::string text = "a\xE2\x80z";
  for (size_t capacity = 0; capacity < 4; ++capacity) {
    Tokens tokens(6, -77);
    size_t count = 0;
    EXPECT_EQ(kv_tokenize(tokenizer_, text.data(), 4, 0, tokens.data(), capacity, &count, &e), KV_BUFFER_TOO_SMALL);
    EXPECT_EQ(std::string(e.message), "4 tokens do not fit a buffer of " + std::to_string(capacity));
    EXPECT_EQ(count, 4U);
    EXPECT_EQ(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(capacity), tokens.end()), Tokens(6 - capacity, -77));

    const Tokens ids = bytes_of(text);
    std::string back(6, '#');
    size_t length = 0;
    EXPECT_EQ(kv_detokenize(tokenizer_, ids.data(), ids.size(), 0, back.data(), capacity, &length, &e),
              KV_BUFFER_TOO_SMALL);
    EXPECT_EQ(std::string(e.message), "4 bytes do not fit a buffer of " + std::to_string(capacity));
    EXPECT_EQ(length, 4U);
    EXPECT_EQ(back.substr(capacity), std::string(6 - capacity, '#'));
  }
  char end[6] = "#####";
  size_t length = 0;
  EXPECT_EQ(kv_token_text(tokenizer_, kEndToken, KV_TEXT_SPECIAL, end, 4, &length, &e), KV_BUFFER_TOO_SMALL);
  EXPECT_EQ(length, 5U);
  EXPECT_STREQ(end, "#####");
  OK(kv_token_text(tokenizer_, kEndToken, KV_TEXT_SPECIAL, end, 5, &length, &e));
  EXPECT_STREQ(end, "<end>");
}

TEST_F(TextApi, P18TokensThatDoNotExist) {
  for (const int32_t token : {-1, 260, INT32_MAX, INT32_MIN}) {
    char text[8] = "#";
    size_t length = 77;
    const std::string sentence = "token " + std::to_string(token) + " is outside the vocabulary of 260";
    EXPECT_EQ(kv_token_text(tokenizer_, token, 0, text, 8, &length, &e), KV_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(e.message), sentence);
    EXPECT_EQ(kv_detokenize(tokenizer_, &token, 1, 0, text, 8, &length, &e), KV_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(e.message), sentence);
    EXPECT_EQ(length, 77U);
    EXPECT_STREQ(text, "#");
    EXPECT_EQ(kv_token_ends_generation(tokenizer_, token), 0);
  }
}

TEST_F(TextApi, P19HalfACharacterPerToken) {
  using Chunks = std::vector<std::string>;
  EXPECT_EQ(stream(bytes_of("\xF0\x9F\x99\x82")), (Chunks{"", "", "", "\xF0\x9F\x99\x82", ""}));
  EXPECT_EQ(stream(bytes_of("\x80")), (Chunks{"\x80", ""}));
  Tokens unfinished = bytes_of("\xE2\x82");
  unfinished.push_back(2);  // eos
  EXPECT_EQ(stream(unfinished), (Chunks{"", "", "", "\xE2\x82"}));
  EXPECT_EQ(stream({kEndToken}, KV_TEXT_SPECIAL), (Chunks{"<end>", ""}));
}

// Any tokens: nothing is lost, at most three bytes wait, and no chunk but the last ends inside a character.
TEST_F(TextApi, P19ConcatenatedOutputIsTheInput) {
  std::mt19937 random(19);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    while (text.size() < 60) {
      if (random() % 3 == 0) text += static_cast<char>(random());
      utf8_append(static_cast<uint32_t>(random() % 2 == 0 ? random() % 0x80 : 0x1F300 + random() % 0x300), &text);
    }
    std::string streamed;
    size_t pushed = 0;
    for (const std::string& chunk : stream(bytes_of(text))) {
      streamed += chunk;
      if (pushed < text.size()) {
        ++pushed;
        EXPECT_EQ(streamed.size(), pushed - utf8_unfinished_tail(std::string_view(text).substr(0, pushed)));
      }
    }
    EXPECT_EQ(streamed, text);
  }
}

TEST_F(TextApi, AStreamRefusesWhatIsNoToken) {
  kv_text_stream* made = nullptr;
  OK(kv_text_stream_create(tokenizer_, 0, &made, &e));
  const test::StreamPtr owner(made);
  const char* text = nullptr;
  size_t length = 0;
  OK(kv_text_stream_push(made, kFirstByteToken + 0xC3, &text, &length, &e));
  EXPECT_EQ(kv_text_stream_push(made, 260, &text, &length, &e), KV_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(e.message), "token 260 is outside the vocabulary of 260");
  OK(kv_text_stream_push(made, kFirstByteToken + 0xA9, &text, &length, &e));
  EXPECT_EQ(std::string(text, length), "\xC3\xA9");
  EXPECT_EQ(kv_text_stream_create(tokenizer_, 0x10, &made, &e), KV_UNSUPPORTED);
  EXPECT_EQ(std::string(e.message), "kv_text_stream_create: flags 0x10 are not known");
}

}  // namespace
}  // namespace kvasir
