// SPDX-License-Identifier: MIT
//
// Published tokenizer vectors: vocabularies of real models (as GGUF files, some packed with xz), texts and their
// tokens. They live in KVASIR_SHARED/models/vocab, outside the source tree; where they are absent the tests skip.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "model/gguf.h"
#include "model/vocabulary.h"
#include "text/tokenizer.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

fs::path shared_folder() {
  const char* named = std::getenv("KVASIR_SHARED");
  return named != nullptr ? fs::path(named) : fs::path("../shared");
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split_texts(const std::string& input) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t end; (end = input.find(separator, begin)) != std::string::npos; begin = end + separator.size()) {
    texts.push_back(input.substr(begin, end - begin));
  }
  return texts;
}

std::vector<std::vector<int32_t>> split_tokens(const std::string& output) {
  std::vector<std::vector<int32_t>> lists;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    lists.emplace_back(std::istream_iterator<int32_t>(numbers), std::istream_iterator<int32_t>());
  }
  return lists;
}

class TokenizerVectors : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override {
    if (!unpacked_.empty()) fs::remove(unpacked_);
  }

  // The plain GGUF file, unpacked if need be; empty, with a reason, where that cannot be had.
  fs::path find_vocabulary(const fs::path& plain, std::string* why) {
    if (fs::exists(plain)) return plain;
    const fs::path packed = plain.string() + ".xz";
    if (!fs::exists(packed)) {
      *why = "no " + plain.string();
      return {};
    }
    unpacked_ = fs::temp_directory_path() / ("kvasir_" + plain.filename().string());
    const std::string command = "xz -dc '" + packed.string() + "' > '" + unpacked_.string() + "'";
    if (std::system(command.c_str()) == 0) return unpacked_;
    *why = "cannot unpack " + packed.string() + " (needs xz)";
    return {};
  }

  fs::path unpacked_;
};

TEST_P(TokenizerVectors, TokensAsPublishedAndBackToTheText) {
  const fs::path base = shared_folder() / "models" / "vocab" / (std::string("ggml-vocab-") + GetParam() + ".gguf");
  std::string why;
  const fs::path path = find_vocabulary(base, &why);
  if (path.empty()) GTEST_SKIP() << why;

  std::shared_ptr<const Gguf> gguf;
  Status status = open_gguf(path.string(), FileAccess::read, &gguf);
  ASSERT_TRUE(status.ok()) << status.message();
  Vocabulary vocabulary;
  bool present = false;
  status = vocabulary_from_gguf(*gguf, &vocabulary, &present);
  ASSERT_TRUE(status.ok() && present) << status.message();
  std::unique_ptr<Tokenizer> tokenizer;
  status = Tokenizer::create(std::move(vocabulary), &tokenizer);
  ASSERT_TRUE(status.ok()) << status.message();

  const auto texts = split_texts(read_file(base.string() + ".inp"));
  const auto expected = split_tokens(read_file(base.string() + ".out"));
  ASSERT_EQ(texts.size(), 46u);
  ASSERT_EQ(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> tokens;
    std::string text;
    status = tokenizer->encode(texts[i], false, false, &tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(tokens, expected[i]) << texts[i];
    ASSERT_TRUE(tokenizer->decode(tokens, false, &text).ok());
    EXPECT_EQ(text, texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Published, TokenizerVectors,
                         ::testing::Values("gpt-2", "llama-spm", "phi-3", "deepseek-coder", "deepseek-llm", "falcon",
                                           "qwen2", "llama-bpe"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace kvasir
