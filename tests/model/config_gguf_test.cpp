// SPDX-License-Identifier: MIT
//
// config_from_gguf and vocabulary_from_gguf: keys to fields, defaults, families, refusals by name.
#include <gtest/gtest.h>

#include "model/config.h"
#include "model/gguf.h"
#include "model/vocabulary.h"
#include "support/random_model.h"
#include "text/vocabulary.h"

namespace kvasir {
namespace {

using testing::GgufWriter;
using testing::small_config;

Status read(const GgufWriter& writer, ModelConfig* config) {
  std::shared_ptr<const Gguf> gguf;
  KV_RETURN_IF_ERROR(testing::parse_bytes(writer.bytes(), &gguf));
  return config_from_gguf(*gguf, config);
}

// The least a llama file says.
GgufWriter least(const std::string& architecture = "llama") {
  GgufWriter writer;
  const std::string p = architecture + ".";
  writer.string("general.architecture", architecture).u32(p + "block_count", 2).u32(p + "embedding_length", 32);
  writer.u32(p + "feed_forward_length", 64).u32(p + "attention.head_count", 4);
  return writer.f32(p + "attention.layer_norm_rms_epsilon", 1e-5F).u32(p + "vocab_size", 64);
}

TEST(ConfigGguf, ReadsBackWhatWasWritten) {
  ModelConfig config;
  ModelConfig written = small_config();
  written.head_dim = 20;
  written.v_head_dim = 12;
  written.rope.theta = 500000.0F;
  written.norm_eps = 1e-6F;
  ASSERT_TRUE(read(testing::gguf_keys(written), &config).ok());
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.name, "random");
  EXPECT_EQ(config.layers, 2U);
  EXPECT_EQ(config.dim, 32U);
  EXPECT_EQ(config.heads, 4U);
  EXPECT_EQ(config.kv_heads, 2U);
  EXPECT_EQ(config.head_dim, 20U);
  EXPECT_EQ(config.v_head_dim, 12U);
  EXPECT_EQ(config.ffn_dim, 64U);
  EXPECT_EQ(config.vocab, 64U);
  EXPECT_EQ(config.context_length, 64U);
  EXPECT_EQ(config.norm_eps, 1e-6F);
  EXPECT_EQ(config.rope.dims, 8U);
  EXPECT_EQ(config.rope.theta, 500000.0F);
  EXPECT_EQ(config.rope.scaling, RopeScaling::none);
}

TEST(ConfigGguf, FillsInWhatIsUnsaid) {
  ModelConfig config;
  const Status status = read(least(), &config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(config.kv_heads, 4U);
  EXPECT_EQ(config.head_dim, 8U);
  EXPECT_EQ(config.v_head_dim, 8U);
  EXPECT_EQ(config.rope.dims, 8U);
  EXPECT_EQ(config.rope.theta, 10000.0F);
  EXPECT_EQ(config.context_length, 0U);
  EXPECT_EQ(config.rope.factors_tensor, "");
}

TEST(ConfigGguf, FamiliesDiffer) {
  ModelConfig llama;
  ModelConfig qwen2;
  ModelConfig qwen3;
  ASSERT_TRUE(read(least("llama"), &llama).ok());
  ASSERT_TRUE(read(least("qwen2"), &qwen2).ok());
  ASSERT_TRUE(read(least("qwen3"), &qwen3).ok());
  EXPECT_EQ(llama.rope.pairing, RopePairing::adjacent);
  EXPECT_EQ(qwen2.rope.pairing, RopePairing::halves);
  EXPECT_EQ(qwen3.rope.pairing, RopePairing::halves);
  EXPECT_FALSE(llama.qk_norm);
  EXPECT_FALSE(qwen2.qk_norm);
  EXPECT_TRUE(qwen3.qk_norm);
}

TEST(ConfigGguf, RefusesOtherFamiliesByName) {
  ModelConfig config;
  Status status = read(least("gemma2"), &config);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "architecture 'gemma2' is not supported; supported are llama, qwen2, qwen3");
  status = read(least().u32("llama.expert_count", 4), &config);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "architecture 'llama' with 4 experts is not supported yet");
  status = read(GgufWriter(), &config);
  EXPECT_EQ(status.code(), KV_CORRUPT);
  EXPECT_STREQ(status.message(), "the file has no key 'general.architecture'");
}

TEST(ConfigGguf, ReadsPerLayerCounts) {
  GgufWriter writer;
  writer.string("general.architecture", "llama").u32("llama.block_count", 2).u32("llama.embedding_length", 32);
  writer.u32s("llama.feed_forward_length", {64, 96}).u32s("llama.attention.head_count", {4, 4});
  writer.i32s("llama.attention.head_count_kv", {4, 2}).f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.u32("llama.vocab_size", 64);
  ModelConfig config;
  const Status status = read(writer, &config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(config.heads, 4U);
  EXPECT_TRUE(config.layer_heads.empty()) << "equal for all layers";
  EXPECT_EQ(config.layer_kv_heads, (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(config.layer_ffn_dim, (std::vector<uint32_t>{64, 96}));
}

TEST(ConfigGguf, RefusesAPerLayerListOfAnotherLength) {
  ModelConfig config;
  EXPECT_STREQ(read(least().u32s("llama.attention.head_count_kv", {4, 2, 1}), &config).message(),
               "key 'llama.attention.head_count_kv' has 3 values, the model has 2 layers");
}

TEST(ConfigGguf, RopeScaling) {
  ModelConfig config;
  ASSERT_TRUE(read(least().f32("llama.rope.scale_linear", 2.0F), &config).ok());
  EXPECT_EQ(config.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(config.rope.factor, 2.0F);
  const auto scaled = [](const char* type) {
    return least().string("llama.rope.scaling.type", type).f32("llama.rope.scaling.factor", 4.0F);
  };
  ASSERT_TRUE(read(scaled("none"), &config).ok());
  EXPECT_EQ(config.rope.scaling, RopeScaling::none);
  ASSERT_TRUE(read(scaled("linear"), &config).ok());
  EXPECT_EQ(config.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(config.rope.factor, 4.0F);
  ASSERT_TRUE(read(scaled("yarn").u32("llama.rope.scaling.original_context_length", 4096), &config).ok());
  EXPECT_EQ(config.rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(config.rope.original_context, 4096U);
  EXPECT_EQ(config.rope.yarn_beta_fast, 32.0F);
  const Status status = read(scaled("longrope"), &config);
  EXPECT_EQ(status.code(), KV_UNSUPPORTED);
  EXPECT_STREQ(status.message(), "key 'llama.rope.scaling.type' is 'longrope', supported are none, linear and yarn");
}

TEST(ConfigGguf, TheEmbeddingTableDecidesTheVocabulary) {
  GgufWriter writer = least();  // says 64
  writer.tensor("token_embd.weight", KV_TYPE_F32, {32, 70}, std::vector<uint8_t>(32 * 70 * 4));
  ModelConfig config;
  ASSERT_TRUE(read(writer, &config).ok());
  EXPECT_EQ(config.vocab, 70U);
  EXPECT_TRUE(config.tied_output);
  writer.tensor("output.weight", KV_TYPE_F32, {32, 70}, std::vector<uint8_t>(32 * 70 * 4));
  writer.tensor("rope_freqs.weight", KV_TYPE_F32, {4}, std::vector<uint8_t>(16));
  ASSERT_TRUE(read(writer, &config).ok());
  EXPECT_FALSE(config.tied_output);
  EXPECT_EQ(config.rope.factors_tensor, "rope_freqs.weight");
}

Status read_vocabulary(const GgufWriter& writer, Vocabulary* vocabulary, bool* present) {
  std::shared_ptr<const Gguf> gguf;
  KV_RETURN_IF_ERROR(testing::parse_bytes(writer.bytes(), &gguf));
  return vocabulary_from_gguf(*gguf, vocabulary, present);
}

TEST(VocabularyGguf, ReadsAllOfIt) {
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", std::string("a\0b", 3)});
  writer.f32s("tokenizer.ggml.scores", {0.0F, -1.0F, -2.0F}).i32s("tokenizer.ggml.token_type", {2, 3, 1});
  writer.u32("tokenizer.ggml.bos_token_id", 1).i32("tokenizer.ggml.eos_token_id", -1);
  writer.u32("tokenizer.ggml.unknown_token_id", 0).u32("tokenizer.ggml.padding_token_id", UINT32_MAX);
  writer.boolean("tokenizer.ggml.add_bos_token", false).boolean("tokenizer.ggml.add_eos_token", true);
  writer.strings("tokenizer.ggml.merges", {"a b", "ab c"});
  Vocabulary vocabulary;
  bool present = false;
  const Status status = read_vocabulary(writer, &vocabulary, &present);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(present);
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_EQ(vocabulary.pieces, (std::vector<std::string>{"<unk>", "<s>", std::string("a\0b", 3)}));
  EXPECT_EQ(vocabulary.scores, (std::vector<float>{0.0F, -1.0F, -2.0F}));
  EXPECT_EQ(vocabulary.types, (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(vocabulary.merges, (std::vector<std::string>{"a b", "ab c"}));
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.eos, -1);
  EXPECT_EQ(vocabulary.unk, 0);
  EXPECT_EQ(vocabulary.pad, -1);
  EXPECT_FALSE(vocabulary.add_bos);
  EXPECT_TRUE(vocabulary.add_eos);
}

TEST(VocabularyGguf, MayBeAbsentButNotHalfThere) {
  Vocabulary vocabulary;
  vocabulary.model = "untouched";
  bool present = true;
  ASSERT_TRUE(read_vocabulary(GgufWriter(), &vocabulary, &present).ok());
  EXPECT_FALSE(present);
  EXPECT_STREQ(read_vocabulary(GgufWriter().strings("tokenizer.ggml.tokens", {"a"}), &vocabulary, &present).message(),
               "the file has no key 'tokenizer.ggml.model'");
  const auto named = [] { return GgufWriter().string("tokenizer.ggml.model", "llama"); };
  EXPECT_STREQ(read_vocabulary(named().u32s("tokenizer.ggml.tokens", {1}), &vocabulary, &present).message(),
               "key 'tokenizer.ggml.tokens' is an array of u32, expected an array of strings");
  auto writer = named().strings("tokenizer.ggml.tokens", {"a"}).u32("tokenizer.ggml.eos_token_id", 0x80000000U);
  EXPECT_STREQ(read_vocabulary(writer, &vocabulary, &present).message(),
               "key 'tokenizer.ggml.eos_token_id' is 2147483648, which is no token");
  EXPECT_EQ(vocabulary.model, "untouched");
}

}  // namespace
}  // namespace kvasir
