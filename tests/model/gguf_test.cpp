// SPDX-License-Identifier: MIT
//
// Right GGUF files: every kind of value comes back, conversions are those the header promises, tensors lie where they
// were put. Wrong files are in gguf_bad_test.cpp.
#include "model/gguf.h"

#include <gtest/gtest.h>

#include "support/gguf_writer.h"

namespace kvasir {
namespace {

using testing::GgufWriter;
using testing::parse_bytes;
using testing::RawBytes;

std::shared_ptr<const Gguf> parse(const GgufWriter& writer) {
  std::shared_ptr<const Gguf> gguf;
  const Status status = parse_bytes(writer.bytes(), &gguf);
  EXPECT_TRUE(status.ok()) << status.message();
  return gguf;
}

TEST(Gguf, ReadsEveryScalarType) {
  GgufWriter writer;
  writer.scalar<uint8_t>("u8", GgufType::u8, 200).scalar<int8_t>("i8", GgufType::i8, -5);
  writer.u16("u16", 65535).scalar<int16_t>("i16", GgufType::i16, -300).u32("u32", 4294967295U).i32("i32", -7);
  writer.scalar<uint64_t>("u64", GgufType::u64, UINT64_MAX).scalar<int64_t>("i64", GgufType::i64, INT64_MIN);
  writer.f32("f32", 0.5F).scalar<double>("f64", GgufType::f64, 0.1).boolean("bool", true).string("string", "a\0b");
  const auto gguf = parse(writer);
  ASSERT_EQ(gguf->metadata_count(), 12U);

  uint64_t wide = 0;
  int64_t narrow = 0;
  float real = 0;
  bool truth = false;
  EXPECT_TRUE(gguf->find("u8")->as_u64(&wide).ok() && wide == 200);
  EXPECT_TRUE(gguf->find("i8")->as_i64(&narrow).ok() && narrow == -5);
  EXPECT_TRUE(gguf->find("u16")->as_u64(&wide).ok() && wide == 65535);
  EXPECT_TRUE(gguf->find("i16")->as_i64(&narrow).ok() && narrow == -300);
  EXPECT_TRUE(gguf->find("u32")->as_u64(&wide).ok() && wide == 4294967295U);
  EXPECT_TRUE(gguf->find("i32")->as_i64(&narrow).ok() && narrow == -7);
  EXPECT_TRUE(gguf->find("u64")->as_u64(&wide).ok() && wide == UINT64_MAX);
  EXPECT_TRUE(gguf->find("i64")->as_i64(&narrow).ok() && narrow == INT64_MIN);
  EXPECT_TRUE(gguf->find("f32")->as_f32(&real).ok() && real == 0.5F);
  EXPECT_TRUE(gguf->find("f64")->as_f32(&real).ok() && real == 0.1F);
  EXPECT_TRUE(gguf->find("bool")->as_bool(&truth).ok() && truth);
}

TEST(Gguf, KeepsFileOrderAndFindsByName) {
  const auto gguf = parse(GgufWriter().u32("zebra", 1).string("apple", "x").u32("middle", 3));
  ASSERT_EQ(gguf->metadata_count(), 3U);
  EXPECT_EQ(gguf->metadata(0).key, "zebra");
  EXPECT_EQ(gguf->metadata(1).key, "apple");
  EXPECT_EQ(gguf->metadata(2).key, "middle");
  EXPECT_EQ(gguf->find("middle")->text(), "3");
  EXPECT_FALSE(gguf->find("middl").has_value());
  EXPECT_FALSE(gguf->find("middlee").has_value());
  EXPECT_FALSE(gguf->find("").has_value());
}

TEST(Gguf, StringsKeepTheirBytes) {
  const std::string bytes("a\0\xff b", 5);
  const auto gguf = parse(GgufWriter().string("s", bytes).string("empty", "").strings("list", {bytes, "", "c"}));
  std::string_view text;
  ASSERT_TRUE(gguf->find("s")->as_string(&text).ok());
  EXPECT_EQ(text, bytes);
  ASSERT_TRUE(gguf->find("empty")->as_string(&text).ok());
  EXPECT_EQ(text, "");
  std::vector<std::string_view> list;
  ASSERT_TRUE(gguf->find("list")->as_strings(&list).ok());
  EXPECT_EQ(list, (std::vector<std::string_view>{bytes, "", "c"}));
}

TEST(Gguf, ReadsArrays) {
  GgufWriter writer;
  writer.f32s("reals", {1.5F, -2.0F}).i32s("signed", {3, 4}).i32s("negative", {3, -4}).u32s("none", {});
  const auto gguf = parse(writer);
  std::vector<float> reals;
  std::vector<uint32_t> numbers = {9};
  ASSERT_TRUE(gguf->find("reals")->as_f32s(&reals).ok());
  EXPECT_EQ(reals, (std::vector<float>{1.5F, -2.0F}));
  ASSERT_TRUE(gguf->find("signed")->as_u32s(&numbers).ok());
  EXPECT_EQ(numbers, (std::vector<uint32_t>{3, 4}));
  EXPECT_STREQ(gguf->find("negative")->as_u32s(&numbers).message(),
               "key 'negative' is -4, expected numbers of 32 bits");
  EXPECT_EQ(numbers, (std::vector<uint32_t>{3, 4})) << "a failing read leaves its target alone";
  ASSERT_TRUE(gguf->find("none")->as_u32s(&numbers).ok());
  EXPECT_TRUE(numbers.empty());
}

TEST(Gguf, ElementsOfArraysAreValues) {
  GgufWriter writer;
  writer.strings("s", {"one", "", "three"}).i32s("n", {3, -4}).string("plain", "x");
  writer.scalar<double>("f64", GgufType::f64, 0.1);
  const auto gguf = parse(writer);
  MetadataValue element;
  ASSERT_TRUE(gguf->find("s")->element_at(2, &element).ok());
  EXPECT_EQ(element.text(), "three");
  ASSERT_TRUE(gguf->find("s")->element_at(1, &element).ok());
  EXPECT_EQ(element.text(), "");
  int64_t number = 0;
  ASSERT_TRUE(gguf->find("n")->element_at(1, &element).ok());
  EXPECT_TRUE(element.as_i64(&number).ok());
  EXPECT_EQ(number, -4);
  EXPECT_FALSE(gguf->find("n")->element_at(2, &element).ok());
  EXPECT_FALSE(gguf->find("n")->element_at(UINT64_MAX, &element).ok());
  EXPECT_FALSE(gguf->find("plain")->element_at(0, &element).ok());
  double real = 0;
  ASSERT_TRUE(gguf->find("f64")->as_f64(&real).ok());
  EXPECT_EQ(real, 0.1);
}

TEST(Gguf, RefusesAnotherTypeAndNamesTheKey) {
  const auto gguf = parse(GgufWriter().string("s", "x").i32("minus", -1).f32("real", 1.0F).u32s("list", {1}));
  uint32_t number = 7;
  float real = 7;
  bool truth = true;
  std::string text = "kept";
  EXPECT_STREQ(gguf->get("s", &number).message(), "key 's' is of type string, expected an integer");
  EXPECT_STREQ(gguf->get("minus", &number).message(), "key 'minus' is -1, expected a number of 32 bits");
  EXPECT_STREQ(gguf->get("real", &number).message(), "key 'real' is of type f32, expected an integer");
  EXPECT_STREQ(gguf->get("minus", &real).message(), "key 'minus' is of type i32, expected a floating-point number");
  EXPECT_STREQ(gguf->get("minus", &truth).message(), "key 'minus' is of type i32, expected a boolean");
  EXPECT_STREQ(gguf->get("list", &text).message(), "key 'list' is an array of u32, expected a string");
  EXPECT_EQ(gguf->get("s", &number).code(), KV_CORRUPT);
  EXPECT_EQ(number, 7U);
  EXPECT_EQ(real, 7.0F);
  EXPECT_TRUE(truth);
  EXPECT_EQ(text, "kept");
}

TEST(Gguf, AbsentKeysAreDefaultsOrMissing) {
  const auto gguf = parse(GgufWriter().u32("a", 1));
  uint32_t number = 7;
  std::string text = "kept";
  EXPECT_TRUE(gguf->get("b", &number).ok());
  EXPECT_TRUE(gguf->get("b", &text).ok());
  EXPECT_EQ(number, 7U);
  EXPECT_EQ(text, "kept");
  EXPECT_STREQ(gguf->require("b", &number).message(), "the file has no key 'b'");
  EXPECT_TRUE(gguf->require("a", &number).ok());
  EXPECT_EQ(number, 1U);
}

TEST(Gguf, BooleanIsZeroOrOne) {
  const auto gguf = parse(GgufWriter().scalar<uint8_t>("b", GgufType::boolean, 2));
  bool truth = false;
  EXPECT_STREQ(gguf->find("b")->as_bool(&truth).message(), "key 'b' is 2, expected a boolean of 0 or 1");
}

TEST(Gguf, TextIsForPeople) {
  GgufWriter writer;
  writer.f32("f", 1e-6F).boolean("b", false).i32s("n", {1, -2, 3}).strings("s", {"x", "yy", "z"}).u32s("e", {});
  const auto gguf = parse(writer);
  EXPECT_EQ(gguf->find("f")->text(), "1e-06");
  EXPECT_EQ(gguf->find("b")->text(), "false");
  EXPECT_EQ(gguf->find("n")->text(), "[1, -2, 3]");
  EXPECT_EQ(gguf->find("s")->text(2), "[x, yy, ... 3 values]");
  EXPECT_EQ(gguf->find("s")->text(0), "[3 values]");
  EXPECT_EQ(gguf->find("e")->text(), "[]");
}

TEST(Gguf, NestedArraysAreCarriedAlong) {
  RawBytes file;
  file.header(3, 0, 2).string("nested").u32(9).u32(9).u64(2);
  file.u32(4).u64(2).u32(1).u32(2);    // [1, 2]
  file.u32(8).u64(1).string("inner");  // ["inner"]
  file.string("after").u32(4).u32(42);
  std::shared_ptr<const Gguf> gguf;
  ASSERT_TRUE(parse_bytes(file.bytes(), &gguf).ok());
  EXPECT_EQ(gguf->find("nested")->text(), "[2 arrays]");
  EXPECT_EQ(gguf->find("after")->text(), "42");
  std::vector<uint32_t> numbers;
  EXPECT_STREQ(gguf->find("nested")->as_u32s(&numbers).message(),
               "key 'nested' is an array of array, expected an array of integers");
}

TEST(Gguf, TensorsLieWhereTheyWerePut) {
  for (const uint32_t alignment : {1U, 32U, 4096U}) {
    GgufWriter writer;
    writer.alignment(alignment);
    writer.tensor("a", KV_TYPE_F32, {3}, std::vector<uint8_t>(12, 0xAA));
    writer.tensor("b", KV_TYPE_Q8_0, {64, 2}, std::vector<uint8_t>(136, 0xBB));
    const std::vector<uint8_t> bytes = writer.bytes();
    std::shared_ptr<const Gguf> gguf;
    const Status status = parse_bytes(bytes, &gguf);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(gguf->tensors().size(), 2U);
    const TensorInfo& b = *gguf->find_tensor("b");
    EXPECT_EQ(b.type, static_cast<uint32_t>(KV_TYPE_Q8_0));
    EXPECT_EQ(dims_text(b), "[64, 2]");
    EXPECT_EQ(b.row_bytes, 68U);
    EXPECT_EQ(b.rows, 2U);
    EXPECT_EQ(b.bytes, 136U);
    EXPECT_EQ(gguf->extent(1).offset % alignment, 0U);
    EXPECT_EQ(bytes[gguf->extent(0).offset], 0xAA);
    EXPECT_EQ(bytes[gguf->extent(1).offset], 0xBB);
    EXPECT_EQ(bytes[gguf->extent(1).offset + 135], 0xBB);
    EXPECT_EQ(gguf->find_tensor("c"), nullptr);
  }
}

TEST(Gguf, VersionTwoIsTheSame) {
  const auto gguf = parse(GgufWriter().version(2).u32("a", 1));
  EXPECT_EQ(gguf->version(), 2U);
  EXPECT_EQ(gguf->find("a")->text(), "1");
}

TEST(Gguf, ALargeVocabularyIsReadInPieces) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 150000; ++i) tokens.push_back("token number " + std::to_string(i));
  const auto gguf = parse(GgufWriter().strings("tokens", tokens).u32("after", 5));
  std::vector<std::string_view> read;
  ASSERT_TRUE(gguf->find("tokens")->as_strings(&read).ok());
  ASSERT_EQ(read.size(), tokens.size());
  EXPECT_EQ(read.front(), tokens.front());
  EXPECT_EQ(read.back(), tokens.back());
  EXPECT_EQ(gguf->find("after")->text(), "5");
}

}  // namespace
}  // namespace kvasir
