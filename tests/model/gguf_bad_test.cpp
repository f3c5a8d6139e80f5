// SPDX-License-Identifier: MIT
//
// Hostile GGUF headers, one by one: absurd values (P14), counts and lengths that overflow (P15), half-downloaded models
// (P16). Each is refused with a sentence that names the culprit, and without asking for much memory.
#include <gtest/gtest.h>

#include <cmath>

#include "model/config.h"
#include "model/gguf.h"
#include "support/allocation_meter.h"
#include "support/gguf_writer.h"
#include "support/random_model.h"

namespace kvasir {
namespace {

using testing::GgufWriter;
using testing::RawBytes;

// Parses, with the memory it may ask for bounded: 16 times the file and the buffer a reader begins with.
Status refuse(const std::vector<uint8_t>& bytes) {
  const size_t before = testing::allocated_bytes();
  std::shared_ptr<const Gguf> gguf;
  Status status = testing::parse_bytes(bytes, &gguf);
  EXPECT_LE(testing::allocated_bytes() - before, 16 * bytes.size() + 65536) << status.message();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(gguf, nullptr);
  return status;
}

void expect_refused(const std::vector<uint8_t>& bytes, kv_status code, const std::string& part) {
  const Status status = refuse(bytes);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
      << "said: " << status.message() << "\nexpected: " << part;
}

// One tensor record after a header without keys.
RawBytes one_tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  RawBytes file;
  file.header(3, 1, 0).string(name).u32(dims.size());
  for (const uint64_t dim : dims) file.u64(dim);
  file.u32(type).u64(offset);
  return file;
}

TEST(GgufBad, ZeroDimension) {
  const RawBytes file = one_tensor("t", {1, 0}, 0, 0);
  ASSERT_EQ(file.size(), 65U);
  expect_refused(file.bytes(), KV_CORRUPT, "tensor 't' is [1, 0]: dimension 1 is zero");
}

TEST(GgufBad, Alignment) {
  for (const uint32_t alignment : {0U, 3U, 0x80000000U, 131072U, UINT32_MAX}) {
    expect_refused(GgufWriter().u32("general.alignment", alignment).bytes(), KV_CORRUPT,
                   "key 'general.alignment' is " + std::to_string(alignment) + ", expected a power of two");
  }
  expect_refused(GgufWriter().string("general.alignment", "32").bytes(), KV_CORRUPT,
                 "key 'general.alignment' is of type string, expected u32");
  expect_refused(GgufWriter().u32s("general.alignment", {32}).bytes(), KV_CORRUPT,
                 "key 'general.alignment' is of type array, expected u32");
}

TEST(GgufBad, TwoOfOneName) {
  GgufWriter tensors;
  tensors.tensor("t", KV_TYPE_F32, {8}, std::vector<uint8_t>(32));
  tensors.tensor("u", KV_TYPE_F32, {8}, std::vector<uint8_t>(32));
  tensors.tensor("t", KV_TYPE_F32, {8}, std::vector<uint8_t>(32));
  expect_refused(tensors.bytes(), KV_CORRUPT, "tensor 't' is there twice");
  expect_refused(GgufWriter().u32("a", 1).u32("k", 1).u32("k", 2).bytes(), KV_CORRUPT, "key 'k' is there twice");
}

TEST(GgufBad, Names) {
  RawBytes empty;
  empty.header(3, 0, 1).string("").u32(0).letters("x");
  ASSERT_EQ(empty.size(), 37U);
  expect_refused(empty.bytes(), KV_CORRUPT, "empty key at byte 24");

  expect_refused(GgufWriter().u32(std::string(70000, 'k'), 1).bytes(), KV_CORRUPT, "is 70000 bytes long");
  expect_refused(GgufWriter().u32(std::string("a\0b", 3), 1).bytes(), KV_CORRUPT, "'a?b' has a zero byte in its name");
  expect_refused(one_tensor("", {8}, 0, 0).append(std::vector<uint8_t>(99)).bytes(), KV_CORRUPT, "empty name");
  expect_refused(one_tensor(std::string("a\0b", 3), {8}, 0, 0).bytes(), KV_CORRUPT, "holds a zero byte");
  expect_refused(one_tensor(std::string(300, 'n'), {8}, 0, 0).bytes(), KV_CORRUPT, "has 300 bytes");
  // What a sentence quotes stays printable.
  expect_refused(one_tensor("\xff\n\x1b[2J", {0}, 0, 0).append(std::vector<uint8_t>(9)).bytes(), KV_CORRUPT,
                 "tensor '???[2J'");
}

TEST(GgufBad, Magic) {
  expect_refused({}, KV_CORRUPT, "needs 4 bytes, the file ends 4 bytes short");
  expect_refused({'G', 'G', 'U'}, KV_CORRUPT, "the file ends 1 bytes short");
  expect_refused(RawBytes().letters("PK\3\4").u64(0).u64(0).u64(0).bytes(), KV_CORRUPT, "is not a GGUF file");
  expect_refused(RawBytes().letters("FUGG").u32(3).u64(0).u64(0).bytes(), KV_UNSUPPORTED, "byte-swapped");
}

TEST(GgufBad, Version) {
  for (const uint32_t version : {0U, 1U, 4U, 65535U, UINT32_MAX}) {
    expect_refused(RawBytes().header(version, 0, 0).bytes(), KV_INCOMPATIBLE,
                   "version " + std::to_string(version) + ", versions 2 and 3 are supported");
  }
  expect_refused(RawBytes().header(0x03000000, 0, 0).bytes(), KV_UNSUPPORTED, "byte-swapped (big-endian)");
  expect_refused(RawBytes().header(0x02000000, 0, 0).bytes(), KV_UNSUPPORTED, "version 2");
}

TEST(GgufBad, Counts) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX}) {
    const std::string number = std::to_string(count);
    expect_refused(RawBytes().header(3, count, 0).bytes(), KV_CORRUPT, "claims to hold " + number + " tensors");
    expect_refused(RawBytes().header(3, 0, count).bytes(), KV_CORRUPT, "claims to hold " + number + " keys");
  }
}

TEST(GgufBad, StringLengths) {
  for (const uint64_t length : {uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    RawBytes value;
    value.header(3, 0, 1).string("key").u32(8).u64(length).letters("12345678901");
    expect_refused(value.bytes(), KV_CORRUPT, "the value of key 'key' needs " + std::to_string(length) + " bytes");
    RawBytes element;
    element.header(3, 0, 1).string("key").u32(9).u32(8).u64(2).string("first").u64(length).letters("x");
    expect_refused(element.bytes(), KV_CORRUPT, "the value of key 'key' needs " + std::to_string(length) + " bytes");
    RawBytes name;
    name.header(3, 1, 0).u64(length).append(std::vector<uint8_t>(60));
    expect_refused(name.bytes(), KV_CORRUPT, "the name of a tensor needs " + std::to_string(length) + " bytes");
  }
}

TEST(GgufBad, ArrayCounts) {
  for (uint32_t element = 0; element <= 12; ++element) {
    for (const uint64_t count : {uint64_t{1000}, uint64_t{1} << 61, uint64_t{1} << 62, UINT64_MAX}) {
      RawBytes file;
      file.header(3, 0, 1).string("key").u32(9).u32(element).u64(count).u64(0);
      expect_refused(file.bytes(), KV_CORRUPT, "the value of key 'key'");
    }
  }
}

TEST(GgufBad, ValueTypes) {
  expect_refused(RawBytes().header(3, 0, 1).string("key").u32(13).u64(0).bytes(), KV_CORRUPT,
                 "the value of key 'key' has unknown type 13");
  expect_refused(RawBytes().header(3, 0, 1).string("key").u32(9).u32(77).u64(0).bytes(), KV_CORRUPT,
                 "the value of key 'key' has unknown type 77");
}

TEST(GgufBad, NestedArrays) {
  for (const int depth : {5, 100, 10000, 100000}) {
    RawBytes file;
    file.header(3, 0, 1).string("key").u32(9);
    for (int i = 0; i < depth; ++i) file.u32(9).u64(1);
    file.u32(0).u64(1).letters("x");
    expect_refused(file.bytes(), KV_CORRUPT, "the value of key 'key' has arrays nested more than 4 deep");
  }
}

TEST(GgufBad, Dimensions) {
  const auto with_room = [](RawBytes file) { return file.append(std::vector<uint8_t>(64)).bytes(); };
  const uint64_t wide = uint64_t{1} << 32;
  expect_refused(with_room(one_tensor("t", {wide, wide}, 0, 0)), KV_CORRUPT, "tensor 't' is [4294967296, 4294967296]");
  expect_refused(with_room(one_tensor("t", {4, wide, wide}, 0, 0)), KV_CORRUPT, "does not fit 63 bits");
  expect_refused(with_room(one_tensor("t", {UINT64_MAX}, 0, 0)), KV_CORRUPT, "does not fit 63 bits");
  expect_refused(with_room(one_tensor("t", {uint64_t{1} << 61, 1}, 0, 0)), KV_CORRUPT, "does not fit 63 bits");
  expect_refused(with_room(one_tensor("t", {uint64_t{1} << 60}, 0, 0)), KV_CORRUPT,
                 "tensor 't' needs 4611686018427387904 bytes");
  expect_refused(with_room(one_tensor("t", {}, 0, 0)), KV_CORRUPT, "tensor 't' has 0 dimensions");
  expect_refused(with_room(one_tensor("t", {1, 1, 1, 1, 1}, 0, 0)), KV_CORRUPT, "tensor 't' has 5 dimensions");
  RawBytes many;
  many.header(3, 1, 0).string("t").u32(0x80000000U).append(std::vector<uint8_t>(64));
  expect_refused(many.bytes(), KV_CORRUPT, "tensor 't' has 2147483648 dimensions");
  expect_refused(with_room(one_tensor("t", {33}, 2, 0)), KV_CORRUPT,
                 "rows of 33 values, type q4_0 needs a multiple of 32");
}

TEST(GgufBad, TensorTypes) {
  expect_refused(one_tensor("t", {256}, 16, 0).append(std::vector<uint8_t>(99)).bytes(), KV_UNSUPPORTED,
                 "tensor 't' has type 16 (iq2_xxs), which is not supported");
  for (const uint32_t type : {4U, 5U, 31U, 1000U, UINT32_MAX}) {
    expect_refused(one_tensor("t", {256}, type, 0).append(std::vector<uint8_t>(99)).bytes(), KV_UNSUPPORTED,
                   "tensor 't' has type " + std::to_string(type) + " (unknown)");
  }
}

TEST(GgufBad, TensorPlaces) {
  const auto with_room = [](RawBytes file) { return file.append(std::vector<uint8_t>(64)).bytes(); };
  expect_refused(with_room(one_tensor("t", {8}, 0, 16)), KV_CORRUPT, "no multiple of the alignment 32");
  expect_refused(with_room(one_tensor("t", {8}, 0, 64)), KV_CORRUPT, "tensor 't' needs 32 bytes, the file ends");
  expect_refused(with_room(one_tensor("t", {8}, 0, uint64_t{1} << 40)), KV_CORRUPT, "tensor 't' needs 32 bytes");
  expect_refused(with_room(one_tensor("t", {8}, 0, UINT64_MAX - 31)), KV_CORRUPT, "tensor 't' begins beyond any file");
  RawBytes overlap;
  overlap.header(3, 2, 0);
  overlap.string("a").u32(1).u64(16).u32(0).u64(0);
  overlap.string("b").u32(1).u64(8).u32(0).u64(32);
  overlap.append(std::vector<uint8_t>(256));
  expect_refused(overlap.bytes(), KV_CORRUPT, "tensors 'a' and 'b' overlap");
}

// Keys whose values no model can have.
TEST(GgufBad, ConfigurationIsRefusedByKey) {
  const auto refused = [](const char* key, const char* part, const auto& edit) {
    ModelConfig config = testing::small_config();
    edit(&config);
    std::shared_ptr<const Gguf> gguf;
    const std::vector<uint8_t> bytes = testing::gguf_keys(config).bytes();
    ASSERT_TRUE(testing::parse_bytes(bytes, &gguf).ok());
    ModelConfig out;
    out.name = "untouched";
    const Status status = config_from_gguf(*gguf, &out);
    EXPECT_EQ(status.code(), KV_CORRUPT);
    EXPECT_NE(std::string(status.message()).find(key), std::string::npos) << status.message();
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status.message();
    EXPECT_EQ(out.name, "untouched");
  };
  using C = ModelConfig;
  refused("llama.block_count", "is 0", [](C* c) { c->layers = 0; });
  refused("llama.block_count", "65536", [](C* c) { c->layers = 65536; });
  refused("llama.embedding_length", "is 0", [](C* c) { c->dim = 0; });
  refused("llama.feed_forward_length", "is 0", [](C* c) { c->ffn_dim = 0; });
  refused("llama.attention.head_count", "is 0", [](C* c) { c->heads = 0; });
  refused("llama.attention.head_count_kv", "is 0", [](C* c) { c->kv_heads = 0; });
  refused("llama.attention.head_count", "is 3", [](C* c) { c->heads = 3; });
  refused("llama.attention.key_length", "is 0", [](C* c) { c->head_dim = 0; });
  refused("llama.attention.value_length", "is 0", [](C* c) { c->v_head_dim = 0; });
  refused("llama.vocab_size", "is 0", [](C* c) { c->vocab = 0; });
  refused("llama.rope.dimension_count", "is 0", [](C* c) { c->rope.dims = 0; });
  refused("llama.rope.dimension_count", "is 7", [](C* c) { c->rope.dims = 7; });
  refused("llama.rope.dimension_count", "is 10", [](C* c) { c->rope.dims = 10; });
  refused("llama.rope.freq_base", "is nan", [](C* c) { c->rope.theta = NAN; });
  refused("llama.rope.freq_base", "is inf", [](C* c) { c->rope.theta = INFINITY; });
  refused("llama.rope.freq_base", "is -1", [](C* c) { c->rope.theta = -1.0F; });
  refused("llama.rope.freq_base", "is 0", [](C* c) { c->rope.theta = 0.0F; });
  refused("layer_norm_rms_epsilon", "is nan", [](C* c) { c->norm_eps = NAN; });
  refused("layer_norm_rms_epsilon", "is -1e-05", [](C* c) { c->norm_eps = -1e-5F; });
  refused("dim", "is 4294967295", [](C* c) { c->dim = UINT32_MAX; });
  refused("ffn_dim", "is 4294967295", [](C* c) { c->ffn_dim = UINT32_MAX; });
  refused("vocab", "is 4294967295", [](C* c) { c->vocab = UINT32_MAX; });
  refused("heads", "is 4294967294", [](C* c) { c->heads = UINT32_MAX - 1; });
}

}  // namespace
}  // namespace kvasir
