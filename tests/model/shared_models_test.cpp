// SPDX-License-Identifier: MIT
//
// The models beside the source tree (KVASIR_SHARED/models): all open, or are refused by the name of what is missing;
// compressed weights are near the f32 weights they were made from. Skipped where that folder is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "model/config.h"
#include "model/convert.h"
#include "model/gguf.h"
#include "model/tensors.h"
#include "model/types.h"
#include "model/vocabulary.h"
#include "text/vocabulary.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

class SharedModels : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("KVASIR_SHARED");
    folder_ = fs::path(shared != nullptr ? shared : "../shared") / "models";
    if (!fs::is_directory(folder_)) GTEST_SKIP() << "no models at " << folder_ << "; set KVASIR_SHARED";
  }

  std::vector<fs::path> files(const fs::path& folder) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".gguf") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  std::shared_ptr<const WeightSource> weights(const std::string& name) const {
    std::shared_ptr<const Gguf> gguf;
    std::shared_ptr<const WeightSource> weights;
    const Status status = open_gguf(folder_ / (name + ".gguf"), FileAccess::read, &gguf);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(make_gguf_weights(gguf, &weights).ok());
    return weights;
  }

  fs::path folder_;
};

std::vector<float> widen(const WeightSource& weights, size_t index) {
  const TensorInfo& info = weights.info(index);
  std::vector<uint8_t> data(info.bytes);
  EXPECT_TRUE(weights.read(index, 0, data.data(), data.size()).ok());
  std::vector<float> x(info.dims[0] * info.rows);
  dequantize(info.type, data.data(), x.size(), x.data());
  return x;
}

double relative_error(const std::vector<float>& exact, const std::vector<float>& x) {
  double power = 0;
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    power += double{exact[i]} * exact[i];
    error += (double{exact[i]} - x[i]) * (double{exact[i]} - x[i]);
  }
  return std::sqrt(error / power);
}

TEST_F(SharedModels, OpenOrAreRefusedByName) {
  const std::map<std::string, std::string> refused = {
      {"deepseek2", "architecture 'deepseek2' is not supported"},
      {"gemma2", "architecture 'gemma2' is not supported"},
      {"gemma3", "architecture 'gemma3' is not supported"},
      {"gpt2", "architecture 'gpt2' is not supported"},
      {"phi3", "architecture 'phi3' is not supported"},
      {"qwen3moe", "architecture 'qwen3moe' is not"},
      {"llama-moe", "architecture 'llama' with 4 experts is not supported yet"}};
  size_t opened = 0;
  for (const fs::path& file : files(folder_)) {
    std::shared_ptr<const Gguf> gguf;
    Status status = open_gguf(file, FileAccess::read, &gguf);
    ASSERT_TRUE(status.ok()) << file << ": " << status.message();
    ModelConfig config;
    status = config_from_gguf(*gguf, &config);
    const std::string stem = file.stem();
    const auto reason = std::find_if(refused.begin(), refused.end(),
                                     [&](const auto& r) { return stem.rfind("tiny-" + r.first + "-", 0) == 0; });
    if (reason != refused.end()) {
      EXPECT_EQ(status.code(), KV_UNSUPPORTED) << file;
      EXPECT_EQ(std::string(status.message()).rfind(reason->second, 0), 0U) << file << ": " << status.message();
      continue;
    }
    ASSERT_TRUE(status.ok()) << file << ": " << status.message();
    std::shared_ptr<const WeightSource> source;
    ASSERT_TRUE(make_gguf_weights(gguf, &source).ok());
    status = check_tensors(config, *source);
    EXPECT_TRUE(status.ok()) << file << ": " << status.message();
    Vocabulary vocabulary;
    bool present = false;
    EXPECT_TRUE(vocabulary_from_gguf(*gguf, &vocabulary, &present).ok());
    EXPECT_TRUE(present);
    EXPECT_EQ(vocabulary.pieces.size(), 512U);
    EXPECT_EQ(config.vocab, 512U);
    ++opened;
  }
  EXPECT_GE(opened, 24U);
}

TEST_F(SharedModels, ConfigurationsAreRead) {
  const auto config_of = [this](const char* name) {
    std::shared_ptr<const Gguf> gguf;
    ModelConfig config;
    EXPECT_TRUE(open_gguf(folder_ / name, FileAccess::map, &gguf).ok());
    EXPECT_TRUE(config_from_gguf(*gguf, &config).ok());
    return config;
  };
  const ModelConfig stories = config_of("stories260K-f32.gguf");
  EXPECT_EQ(stories.layers, 5U);
  EXPECT_EQ(stories.dim, 64U);
  EXPECT_EQ(stories.heads, 8U);
  EXPECT_EQ(stories.kv_heads, 4U);
  EXPECT_EQ(stories.head_dim, 8U);
  EXPECT_EQ(stories.ffn_dim, 172U);
  EXPECT_FALSE(stories.tied_output);
  const ModelConfig qwen3 = config_of("tiny-qwen3-f32.gguf");
  EXPECT_EQ(qwen3.head_dim, 48U);
  EXPECT_EQ(qwen3.rope.dims, 48U);
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_TRUE(config_of("tiny-qwen2-f32.gguf").tied_output);
  EXPECT_EQ(config_of("tiny-llama-rope-linear-f32.gguf").rope.factor, 4.0F);
  EXPECT_EQ(config_of("tiny-llama-rope-llama3-f32.gguf").rope.factors_tensor, "rope_freqs.weight");
}

TEST_F(SharedModels, VocabularyFilesOpen) {
  size_t opened = 0;
  for (const fs::path& file : files(folder_ / "vocab")) {
    std::shared_ptr<const Gguf> gguf;
    Status status = open_gguf(file, FileAccess::read, &gguf);
    ASSERT_TRUE(status.ok()) << file << ": " << status.message();
    Vocabulary vocabulary;
    bool present = false;
    status = vocabulary_from_gguf(*gguf, &vocabulary, &present);
    EXPECT_TRUE(status.ok()) << file << ": " << status.message();
    EXPECT_TRUE(present);
    EXPECT_GT(vocabulary.pieces.size(), 30000U) << file;
    ++opened;
  }
  EXPECT_GE(opened, 5U);
}

// A misplaced bit would make the error as large as the weights.
TEST_F(SharedModels, CompressedWeightsAreNearTheirOriginals) {
  const std::map<uint32_t, double> bounds = {
      {KV_TYPE_F32, 0.0},     {KV_TYPE_F16, 4e-4},  {KV_TYPE_Q8_0, 0.01}, {KV_TYPE_Q6_K, 0.025}, {KV_TYPE_Q5_K, 0.05},
      {KV_TYPE_Q5_0, 0.06},   {KV_TYPE_Q4_K, 0.10}, {KV_TYPE_Q4_0, 0.12}, {KV_TYPE_Q4_1, 0.10},  {KV_TYPE_IQ4_NL, 0.10},
      {KV_TYPE_IQ4_XS, 0.10}, {KV_TYPE_Q3_K, 0.20}, {KV_TYPE_Q2_K, 0.40}};
  const auto originals = weights("tiny-llama-gqa-d256-f32");
  std::map<uint32_t, double> worst;
  for (const char* name :
       {"f16", "q8_0", "q6_k", "q5_k_s", "q5_0", "q4_k_m", "q4_0", "q4_1", "iq4_nl", "iq4_xs", "q3_k_s", "q2_k"}) {
    const auto compressed = weights(std::string("tiny-llama-gqa-d256-") + name);
    for (size_t i = 0; i < compressed->count(); ++i) {
      const TensorInfo& info = compressed->info(i);
      const auto original = originals->find(info.name);
      ASSERT_TRUE(original.has_value());
      const double error = relative_error(widen(*originals, *original), widen(*compressed, i));
      ASSERT_EQ(bounds.count(info.type), 1U) << type_name(info.type);
      EXPECT_LE(error, bounds.at(info.type)) << name << " " << info.name << " " << type_name(info.type);
      worst[info.type] = std::max(worst[info.type], error);
    }
  }
  EXPECT_EQ(worst.size(), bounds.size()) << "every type was met";
  for (const auto& [type, error] : worst) {
    EXPECT_EQ(error > 0.0, type != KV_TYPE_F32) << type_name(type);
  }
}

}  // namespace
}  // namespace kvasir
