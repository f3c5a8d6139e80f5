// SPDX-License-Identifier: MIT
//
// Tensor records, the builder's tensors, and check_tensors, which says which tensor is wrong.
#include "model/weights.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/gguf.h"
#include "model/tensors.h"
#include "model/types.h"
#include "support/random_model.h"

namespace kvasir {
namespace {

using testing::RandomTensor;
using testing::small_config;

TensorInfo info_of(std::string name, uint32_t type, std::vector<uint64_t> dims) {
  TensorInfo info;
  info.name = std::move(name);
  info.type = type;
  info.dim_count = static_cast<uint32_t>(dims.size());
  for (size_t i = 0; i < dims.size() && i < 4; ++i) info.dims[i] = dims[i];
  return info;
}

Status build(const std::vector<RandomTensor>& tensors, std::shared_ptr<const WeightSource>* out) {
  WeightsBuilder builder;
  for (const RandomTensor& tensor : tensors) {
    KV_RETURN_IF_ERROR(builder.add(tensor.info, tensor.data.data(), tensor.data.size(), MemoryOwnership::borrow));
  }
  return builder.build(out);
}

// check_tensors over the small model after `edit`.
Status check(const std::function<void(std::vector<RandomTensor>*)>& edit, ModelConfig config = small_config()) {
  std::vector<RandomTensor> tensors = testing::random_tensors(config, KV_TYPE_F32, 1, true);
  edit(&tensors);
  std::shared_ptr<const WeightSource> weights;
  KV_RETURN_IF_ERROR(build(tensors, &weights));
  return check_tensors(config, *weights);
}

RandomTensor& named(std::vector<RandomTensor>* tensors, const std::string& name) {
  for (RandomTensor& tensor : *tensors) {
    if (tensor.info.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return tensors->front();
}

void reshape(RandomTensor* tensor, std::vector<uint64_t> dims) {
  tensor->info = info_of(tensor->info.name, KV_TYPE_F32, std::move(dims));
  ASSERT_TRUE(complete_tensor_info(&tensor->info).ok());
  tensor->data.resize(tensor->info.bytes);
}

TEST(Types, NumbersAndSizes) {
  EXPECT_EQ(type_info(KV_TYPE_DEFAULT), nullptr);
  EXPECT_EQ(type_info(kTypeCount), nullptr);
  for (uint32_t type = KV_TYPE_F32; type < kTypeCount; ++type) {
    ASSERT_NE(type_info(type), nullptr);
    EXPECT_EQ(type_from_gguf(type_info(type)->gguf_id), type);
  }
  EXPECT_EQ(type_from_gguf(16), static_cast<uint32_t>(KV_TYPE_DEFAULT));
  EXPECT_STREQ(gguf_type_name(16), "iq2_xxs");
  EXPECT_STREQ(type_name(KV_TYPE_Q6_K), "q6_k");
  uint64_t bytes = 0;
  EXPECT_TRUE(row_bytes(KV_TYPE_Q6_K, 512, &bytes));
  EXPECT_EQ(bytes, 420U);
  EXPECT_FALSE(row_bytes(KV_TYPE_Q6_K, 128, &bytes));
  EXPECT_FALSE(row_bytes(KV_TYPE_F32, UINT64_MAX / 2, &bytes));
  EXPECT_FALSE(row_bytes(99, 32, &bytes));
}

TEST(WeightsBuilder, CopiesOrBorrows) {
  std::vector<float> first = {1, 2, 3, 4};
  std::vector<float> second = {5, 6, 7, 8};
  WeightsBuilder builder;
  ASSERT_TRUE(builder.add(info_of("b", KV_TYPE_F32, {2, 2}), first.data(), 16, MemoryOwnership::copy).ok());
  ASSERT_TRUE(builder.add(info_of("a", KV_TYPE_F32, {4}), second.data(), 16, MemoryOwnership::borrow).ok());
  std::shared_ptr<const WeightSource> weights;
  ASSERT_TRUE(builder.build(&weights).ok());
  first[0] = 100;
  second[0] = 500;
  ASSERT_EQ(weights->count(), 2U);
  EXPECT_EQ(weights->find("b"), 0U);
  EXPECT_EQ(weights->find("a"), 1U);
  EXPECT_EQ(weights->find("c"), std::nullopt);
  float value = 0;
  ASSERT_TRUE(weights->read(0, 0, &value, 4).ok());
  EXPECT_EQ(value, 1.0F);
  ASSERT_TRUE(weights->read(1, 0, &value, 4).ok());
  EXPECT_EQ(value, 500.0F);
  EXPECT_EQ(weights->view(1), reinterpret_cast<const uint8_t*>(second.data()));
  EXPECT_NE(weights->view(0), reinterpret_cast<const uint8_t*>(first.data()));
}

TEST(WeightsBuilder, ReadsStayInsideATensor) {
  const std::vector<float> data(8);
  WeightsBuilder builder;
  ASSERT_TRUE(builder.add(info_of("t", KV_TYPE_F32, {8}), data.data(), 32, MemoryOwnership::borrow).ok());
  std::shared_ptr<const WeightSource> weights;
  ASSERT_TRUE(builder.build(&weights).ok());
  uint8_t buffer[40];
  EXPECT_TRUE(weights->read(0, 28, buffer, 4).ok());
  EXPECT_TRUE(weights->read(0, 32, buffer, 0).ok());
  EXPECT_STREQ(weights->read(0, 28, buffer, 5).message(), "cannot read 5 bytes at 28 of tensor 't', which has 32");
  EXPECT_EQ(weights->read(0, 33, buffer, 0).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(weights->read(0, UINT64_MAX, buffer, 2).code(), KV_INVALID_ARGUMENT);
}

TEST(WeightsBuilder, RefusesWrongTensors) {
  const std::vector<uint8_t> data(256);
  WeightsBuilder builder;
  const auto add = [&](const TensorInfo& info, uint64_t bytes) {
    return std::string(builder.add(info, data.data(), bytes, MemoryOwnership::copy).message());
  };
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {8}), 31), "tensor 't' is [8] of type f32 and needs 32 bytes, 31 were given");
  EXPECT_EQ(add(info_of("", KV_TYPE_F32, {8}), 32), "a tensor has an empty name");
  EXPECT_EQ(add(info_of("t", 99, {8}), 32), "tensor 't' has unknown type 99");
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {}), 0), "tensor 't' has 0 dimensions, between 1 and 4 are possible");
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {1, 1, 1, 1, 1}), 4),
            "tensor 't' has 5 dimensions, between 1 and 4 are possible");
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {8, 0}), 0), "tensor 't' is [8, 0]: dimension 1 is zero");
  EXPECT_EQ(add(info_of("t", KV_TYPE_Q4_0, {40}), 0),
            "tensor 't' has rows of 40 values, type q4_0 needs a multiple of 32");
  EXPECT_EQ(builder.add(info_of("t", KV_TYPE_F32, {8}), nullptr, 32, MemoryOwnership::borrow).code(),
            KV_INVALID_ARGUMENT);
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {8}), 32), "");
  EXPECT_EQ(add(info_of("t", KV_TYPE_F32, {8}), 32), "tensor 't' is there twice");
  std::shared_ptr<const WeightSource> weights;
  ASSERT_TRUE(builder.build(&weights).ok());
  EXPECT_EQ(weights->count(), 1U) << "a refused tensor leaves no trace";
}

TEST(Tensors, ACompleteModelPasses) {
  EXPECT_STREQ(check([](auto*) {}).message(), "");
  ModelConfig qwen = small_config();
  qwen.qk_norm = true;
  qwen.tied_output = true;
  EXPECT_STREQ(check([](auto*) {}, qwen).message(), "");
  ModelConfig toy = small_config();
  toy.norm = NormKind::none;
  toy.ffn = FfnKind::none;
  toy.embedding = toy.output = toy.attention_output = false;
  EXPECT_STREQ(check([](auto* tensors) { EXPECT_EQ(tensors->size(), 12U) << "q, k, v and biases of two layers"; }, toy)
                   .message(),
               "");
}

TEST(Tensors, NamesTheMissingOne) {
  const std::vector<RandomTensor> all = testing::random_tensors(small_config(), KV_TYPE_F32, 1, false);
  ASSERT_EQ(all.size(), 3U + 2U * 9U);
  for (const RandomTensor& missing : all) {
    const Status status = check([&](std::vector<RandomTensor>* tensors) {
      std::erase_if(*tensors, [&](const RandomTensor& t) { return t.info.name == missing.info.name; });
    });
    EXPECT_EQ(status.code(), KV_NOT_FOUND);
    EXPECT_EQ(status.message(), "tensor '" + missing.info.name + "' " + dims_text(missing.info) + " is missing");
  }
}

TEST(Tensors, SaysWhatShapeWasExpected) {
  const auto misshapen = [](const char* name, std::vector<uint64_t> dims) {
    const Status status = check([&](auto* tensors) { reshape(&named(tensors, name), dims); });
    EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT);
    return std::string(status.message());
  };
  EXPECT_EQ(misshapen("blk.0.attn_q.weight", {32, 16}), "tensor 'blk.0.attn_q.weight' is [32, 16], expected [32, 32]");
  EXPECT_EQ(misshapen("blk.1.attn_k.weight", {16, 32}), "tensor 'blk.1.attn_k.weight' is [16, 32], expected [32, 16]");
  EXPECT_EQ(misshapen("blk.0.ffn_down.weight", {32, 64}),
            "tensor 'blk.0.ffn_down.weight' is [32, 64], expected [64, 32]");
  EXPECT_EQ(misshapen("output.weight", {32, 65}), "tensor 'output.weight' is [32, 65], expected [32, 64]");
  EXPECT_EQ(misshapen("output_norm.weight", {31}), "tensor 'output_norm.weight' is [31], expected [32]");
  EXPECT_EQ(misshapen("token_embd.weight", {32, 64, 2}),
            "tensor 'token_embd.weight' is [32, 64, 2], expected [32, 64]");
  EXPECT_EQ(misshapen("blk.1.attn_q.bias", {16}), "tensor 'blk.1.attn_q.bias' is [16], expected [32]");
}

TEST(Tensors, LayersMayHaveTheirOwnShapes) {
  ModelConfig config = small_config();
  config.layer_kv_heads = {2, 4};
  config.layer_ffn_dim = {64, 96};
  EXPECT_STREQ(check(
                   [](auto* tensors) {
                     EXPECT_EQ(dims_text(named(tensors, "blk.1.attn_k.weight").info), "[32, 32]");
                     EXPECT_EQ(dims_text(named(tensors, "blk.1.ffn_up.weight").info), "[32, 96]");
                   },
                   config)
                   .message(),
               "");
}

TEST(Weights, FileMapAndMemoryGiveTheSameBytes) {
  const std::vector<uint8_t> bytes = testing::random_gguf(small_config(), KV_TYPE_Q4_0, 7);
  const std::string path = ::testing::TempDir() + "kvasir-weights-test.gguf";
  testing::write_file(path, bytes);
  std::shared_ptr<const Gguf> read;
  std::shared_ptr<const Gguf> mapped;
  std::shared_ptr<const Gguf> memory;
  ASSERT_TRUE(open_gguf(path, FileAccess::read, &read).ok());
  ASSERT_TRUE(open_gguf(path, FileAccess::map, &mapped).ok());
  ASSERT_TRUE(testing::parse_bytes(bytes, &memory).ok());
  std::shared_ptr<const WeightSource> sources[3];
  ASSERT_TRUE(make_gguf_weights(read, &sources[0]).ok());
  ASSERT_TRUE(make_gguf_weights(mapped, &sources[1]).ok());
  ASSERT_TRUE(make_gguf_weights(memory, &sources[2]).ok());
  read.reset();  // the weights keep it
  mapped.reset();
  for (size_t i = 0; i < sources[0]->count(); ++i) {
    std::vector<uint8_t> data(sources[0]->info(i).bytes);
    ASSERT_TRUE(sources[0]->read(i, 0, data.data(), data.size()).ok());
    EXPECT_EQ(sources[0]->view(i), nullptr);
    for (const auto& source : {sources[1], sources[2]}) {
      ASSERT_NE(source->view(i), nullptr);
      EXPECT_EQ(std::memcmp(source->view(i), data.data(), data.size()), 0) << source->info(i).name;
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace kvasir
