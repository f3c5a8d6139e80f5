// SPDX-License-Identifier: MIT
//
// Models in several files: put together from any piece, refused by the name of what is missing or does not belong.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/gguf.h"
#include "model/weights.h"
#include "support/gguf_writer.h"

namespace kvasir {
namespace {

using testing::GgufWriter;
using testing::write_file;
namespace fs = std::filesystem;

GgufWriter piece(uint16_t number, uint16_t count, int32_t tensors) {
  GgufWriter writer;
  if (number == 0) writer.string("general.name", "whole");
  writer.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", tensors);
  writer.tensor(std::string("t").append(std::to_string(number)), KV_TYPE_F32, {8},
                std::vector<uint8_t>(32, static_cast<uint8_t>(number)));
  return writer;
}

class GgufSplit : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("kvasir-split-" + name);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (uint16_t i = 0; i < 3; ++i) write_file(path(i), piece(i, 3, 3).bytes());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(int number) const {
    return folder_ / (std::string("model-0000").append(std::to_string(number + 1)) + "-of-00003.gguf");
  }

  fs::path folder_;
};

TEST_F(GgufSplit, OpensFromAnyPiece) {
  for (int i = 0; i < 3; ++i) {
    std::shared_ptr<const Gguf> gguf;
    const Status status = open_gguf(path(i), FileAccess::read, &gguf);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(gguf->tensors().size(), 3U);
    EXPECT_EQ(gguf->find("general.name")->text(), "whole");
    std::shared_ptr<const WeightSource> weights;
    ASSERT_TRUE(make_gguf_weights(gguf, &weights).ok());
    for (uint8_t t = 0; t < 3; ++t) {
      const auto index = weights->find(std::string("t").append(std::to_string(t)));
      ASSERT_TRUE(index.has_value());
      uint8_t data[32] = {};
      ASSERT_TRUE(weights->read(*index, 0, data, sizeof data).ok());
      EXPECT_EQ(data[0], t);
      EXPECT_EQ(data[31], t);
    }
  }
}

TEST_F(GgufSplit, NamesTheMissingPiece) {
  fs::remove(path(1));
  std::shared_ptr<const Gguf> gguf;
  const Status status = open_gguf(path(0), FileAccess::read, &gguf);
  EXPECT_EQ(status.code(), KV_NOT_FOUND);
  EXPECT_NE(std::string(status.message()).find("piece 2 of 3"), std::string::npos) << status.message();
  EXPECT_NE(std::string(status.message()).find("model-00002-of-00003.gguf"), std::string::npos) << status.message();
  EXPECT_EQ(gguf, nullptr);
}

TEST_F(GgufSplit, RefusesAPieceOfAnotherNumber) {
  write_file(path(1), piece(2, 3, 3).bytes());
  std::shared_ptr<const Gguf> gguf;
  const Status status = open_gguf(path(0), FileAccess::read, &gguf);
  EXPECT_EQ(status.code(), KV_CORRUPT);
  EXPECT_NE(std::string(status.message()).find("is piece 3 of 3 by its own keys, expected piece 2 of 3"),
            std::string::npos)
      << status.message();
}

TEST_F(GgufSplit, RefusesAWrongNumberOfTensors) {
  write_file(path(0), piece(0, 3, 5).bytes());
  std::shared_ptr<const Gguf> gguf;
  EXPECT_STREQ(open_gguf(path(0), FileAccess::read, &gguf).message(),
               "key 'split.tensors.count' is 5, the pieces hold 3 tensors");
}

TEST_F(GgufSplit, RefusesATensorInTwoPieces) {
  write_file(path(1), piece(1, 3, 4).tensor("t0", KV_TYPE_F32, {8}, std::vector<uint8_t>(32)).bytes());
  write_file(path(0), piece(0, 3, 4).bytes());
  std::shared_ptr<const Gguf> gguf;
  EXPECT_STREQ(open_gguf(path(0), FileAccess::read, &gguf).message(), "tensor 't0' is there twice");
}

TEST_F(GgufSplit, RefusesAPieceUnderAnotherName) {
  const std::string renamed = folder_ / "renamed.gguf";
  fs::rename(path(1), renamed);
  std::shared_ptr<const Gguf> gguf;
  const Status status = open_gguf(renamed, FileAccess::read, &gguf);
  EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT);
  EXPECT_NE(std::string(status.message()).find("must end in '-00002-of-00003.gguf'"), std::string::npos)
      << status.message();
}

TEST_F(GgufSplit, MemoryPiecesMustAllBeThere) {
  const auto first = piece(0, 2, 2).bytes();
  const auto second = piece(1, 2, 2).bytes();
  std::shared_ptr<const Gguf> gguf;
  EXPECT_EQ(testing::parse_bytes(first, &gguf).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(testing::parse_bytes(second, &gguf).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(parse_gguf({testing::source_of(second), testing::source_of(first)}, &gguf).code(), KV_CORRUPT);
  EXPECT_EQ(parse_gguf({}, &gguf).code(), KV_INVALID_ARGUMENT);
  ASSERT_TRUE(parse_gguf({testing::source_of(first), testing::source_of(second)}, &gguf).ok());
  EXPECT_EQ(gguf->tensors().size(), 2U);
}

TEST_F(GgufSplit, RefusesImpossibleNumbers) {
  for (const auto& [number, count] : {std::pair<uint16_t, uint16_t>{3, 3}, {9, 2}}) {
    std::shared_ptr<const Gguf> gguf;
    EXPECT_EQ(testing::parse_bytes(piece(number, count, 1).bytes(), &gguf).code(), KV_CORRUPT);
  }
}

}  // namespace
}  // namespace kvasir
