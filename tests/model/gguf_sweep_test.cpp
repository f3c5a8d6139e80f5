// SPDX-License-Identifier: MIT
//
// The deterministic sweep over one small model: every byte of its header damaged, its header cut at every length, its
// data cut at every sixteenth. No damage may crash, ask for much memory, or be answered without a sentence.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/config.h"
#include "model/gguf.h"
#include "model/tensors.h"
#include "model/vocabulary.h"
#include "support/allocation_meter.h"
#include "support/gguf_writer.h"
#include "support/random_model.h"
#include "text/vocabulary.h"

namespace kvasir {
namespace {

// A model of one layer with a vocabulary, so that every kind of value is in its header.
std::vector<uint8_t> small_model() {
  ModelConfig config = testing::small_config();
  config.layers = 1;
  return testing::random_gguf(config, KV_TYPE_F32, 1, false, [](testing::GgufWriter* writer) {
    std::vector<std::string> tokens;
    for (int i = 0; i < 64; ++i) tokens.push_back(std::string("t").append(std::to_string(i)));
    writer->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", tokens);
    writer->f32s("tokenizer.ggml.scores", std::vector<float>(64, 0.0F));
    writer->i32s("tokenizer.ggml.token_type", std::vector<int32_t>(64, 1)).u32("tokenizer.ggml.bos_token_id", 1);
    writer->boolean("tokenizer.ggml.add_bos_token", true);
  });
}

// Everything a host does with a model before it runs it.
Status open_whole(const std::vector<uint8_t>& bytes) {
  std::shared_ptr<const Gguf> gguf;
  KV_RETURN_IF_ERROR(testing::parse_bytes(bytes, &gguf));
  for (size_t i = 0; i < gguf->metadata_count(); ++i) (void)gguf->metadata(i).text();
  ModelConfig config;
  KV_RETURN_IF_ERROR(config_from_gguf(*gguf, &config));
  std::shared_ptr<const WeightSource> weights;
  KV_RETURN_IF_ERROR(make_gguf_weights(gguf, &weights));
  KV_RETURN_IF_ERROR(check_tensors(config, *weights));
  std::vector<uint8_t> data;
  for (size_t i = 0; i < weights->count(); ++i) {
    data.resize(weights->info(i).bytes);
    KV_RETURN_IF_ERROR(weights->read(i, 0, data.data(), data.size()));
  }
  Vocabulary vocabulary;
  bool present = false;
  return vocabulary_from_gguf(*gguf, &vocabulary, &present);
}

size_t header_bytes(const std::vector<uint8_t>& bytes) {
  std::shared_ptr<const Gguf> gguf;
  EXPECT_TRUE(testing::parse_bytes(bytes, &gguf).ok());
  return gguf->extent(0).offset;
}

void expect_orderly(const Status& status, size_t allocated, size_t file_bytes) {
  EXPECT_LE(allocated, 32 * file_bytes + 65536);
  if (status.ok()) return;
  EXPECT_STRNE(status.message(), "");
  const bool expected = status.code() == KV_CORRUPT || status.code() == KV_UNSUPPORTED ||
                        status.code() == KV_INCOMPATIBLE || status.code() == KV_NOT_FOUND ||
                        status.code() == KV_INVALID_ARGUMENT;
  EXPECT_TRUE(expected) << status.code() << ": " << status.message();
}

TEST(GgufSweep, TheWholeModelIsRight) {
  const Status status = open_whole(small_model());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GgufSweep, EveryDamagedByteOfTheHeader) {
  const std::vector<uint8_t> model = small_model();
  const size_t header = header_bytes(model);
  size_t refused = 0;
  for (size_t at = 0; at < header; ++at) {
    for (const uint8_t value : {uint8_t{0x00}, uint8_t{0xFF}, static_cast<uint8_t>(model[at] ^ 0x01),
                                static_cast<uint8_t>(model[at] ^ 0x80)}) {
      std::vector<uint8_t> damaged = model;
      damaged[at] = value;
      const size_t before = testing::allocated_bytes();
      const Status status = open_whole(damaged);
      expect_orderly(status, testing::allocated_bytes() - before, model.size());
      if (!status.ok()) ++refused;
      if (at < 24 && value != model[at] && !(at == 4 && value == 2)) {
        EXPECT_FALSE(status.ok()) << "byte " << at << " is " << int{value};
      }
    }
  }
  EXPECT_GT(refused, header) << "most damage to names, types and numbers is noticed";
}

TEST(GgufSweep, EveryLengthOfTheHeader) {
  const std::vector<uint8_t> model = small_model();
  const size_t header = header_bytes(model);
  for (size_t length = 0; length < header; ++length) {
    const std::vector<uint8_t> cut(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(length));
    const size_t before = testing::allocated_bytes();
    std::shared_ptr<const Gguf> gguf;
    const Status status = testing::parse_bytes(cut, &gguf);
    EXPECT_EQ(status.code(), KV_CORRUPT) << "cut at " << length << ": " << status.message();
    expect_orderly(status, testing::allocated_bytes() - before, length);
  }
}

// P16: the sentence has the tensor, what it needs and what is missing.
TEST(GgufSweep, EverySixteenthOfTheDataAndTheLastByte) {
  const std::vector<uint8_t> model = small_model();
  std::shared_ptr<const Gguf> gguf;
  ASSERT_TRUE(testing::parse_bytes(model, &gguf).ok());
  const size_t data_start = gguf->extent(0).offset;
  const size_t data_bytes = model.size() - data_start;
  std::vector<size_t> lengths = {model.size() - 1};
  for (size_t i = 0; i < 16; ++i) lengths.push_back(data_start + data_bytes * i / 16);

  const std::string path = std::filesystem::path(::testing::TempDir()) / "kvasir-cut-model.gguf";
  for (const size_t length : lengths) {
    size_t first = 0;
    while (gguf->extent(first).offset + gguf->tensors()[first].bytes <= length) ++first;
    const TensorInfo& tensor = gguf->tensors()[first];
    const uint64_t missing = gguf->extent(first).offset + tensor.bytes - length;
    const std::string expected = "tensor '" + tensor.name + "' needs " + std::to_string(tensor.bytes) +
                                 " bytes, the file ends " + std::to_string(missing) + " bytes short";

    testing::write_file(path, {model.begin(), model.begin() + static_cast<std::ptrdiff_t>(length)});
    for (const FileAccess access : {FileAccess::read, FileAccess::map}) {
      std::shared_ptr<const Gguf> cut;
      const Status status = open_gguf(path, access, &cut);
      EXPECT_EQ(status.code(), KV_CORRUPT);
      EXPECT_EQ(std::string(status.message()).rfind(expected, 0), 0U) << status.message();
    }
  }
  std::filesystem::remove(path);
}

// A file that shrinks while it is open is an error of the read, not of the process. (While it is mapped it would be: a
// touched page that is no longer there raises SIGBUS, which is why mapping is for those who ask for it.)
TEST(GgufSweep, AFileCutWhileOpen) {
  const std::vector<uint8_t> model = small_model();
  const std::string path = std::filesystem::path(::testing::TempDir()) / "kvasir-shrinking-model.gguf";
  testing::write_file(path, model);
  std::shared_ptr<const Gguf> gguf;
  ASSERT_TRUE(open_gguf(path, FileAccess::read, &gguf).ok());
  std::shared_ptr<const WeightSource> weights;
  ASSERT_TRUE(make_gguf_weights(gguf, &weights).ok());
  std::filesystem::resize_file(path, gguf->extent(0).offset + 10);

  std::vector<uint8_t> data(weights->info(0).bytes);
  const Status status = weights->read(0, 0, data.data(), data.size());
  EXPECT_EQ(status.code(), KV_IO);
  EXPECT_NE(std::string(status.message()).find("now ends at"), std::string::npos) << status.message();
  EXPECT_TRUE(weights->read(0, 0, data.data(), 10).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kvasir
