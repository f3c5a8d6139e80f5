// SPDX-License-Identifier: MIT
//
// Whole models against a float64 forward over their dequantised weights: the workshop's models, where they are present,
// within the bounds of the numerics table. Each bound is on the rms of the error over the spread of the logits.
#include <nlohmann/json.hpp>

#include <cstring>

#include "support/bounds.h"
#include "support/kv.h"

namespace kvasir::test {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string model, backend;
  uint32_t k_type, compute;
};

std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

class Models : public testing::TestWithParam<Case> {};

TEST_P(Models, MatchTheOracle) {
  const Case& c = GetParam();
  const std::string path = shared_file("models/" + c.model + ".gguf");
  if (path.empty()) GTEST_SKIP() << "the model " << c.model << " is not here (KVASIR_SHARED)";
  const Json expected = Json::parse(std::ifstream(shared_file("models/expected/" + c.model + ".json")));
  const std::vector<float> want = read_floats(shared_file("models/expected/" + c.model + ".logits.f32"));
  const std::vector<int32_t> prompt = expected.at("prompt_ids");

  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), path);
  ASSERT_TRUE(model);
  kv_context_options options = sized<kv_context_options>();
  options.device = c.backend.c_str();
  options.k_type = options.v_type = c.k_type;
  options.compute_mode = c.compute;
  options.max_tokens = 256;
  const ContextPtr context = make_context(model.get(), options);
  ASSERT_TRUE(context);

  std::vector<float> got;
  kv_step_options step = sized<kv_step_options>();
  step.outputs = KV_OUTPUT_ALL;
  step.row_user = &got;
  step.row = [](void* user, kv_sequence, uint64_t, const float* row, uint32_t width) {
    auto* out = static_cast<std::vector<float>*>(user);
    out->insert(out->end(), row, row + width);
  };
  Error e;
  OK(kv_prefill(context.get(), KV_DEFAULT_SEQUENCE, prompt.data(), prompt.size(), &step, nullptr, &e));
  ASSERT_EQ(got.size(), want.size());
  const Deviation deviation = compare(got, want);
  const double bound = logits_bound(c.compute, c.k_type);
  RecordProperty("deviation", std::to_string(deviation.relative_rms));
  std::printf("%-32s %-4s %-7s %-5s rms %.2e of the spread (bound %.0e), max %.2e\n", c.model.c_str(),
              c.backend.c_str(), kv_type_name(c.k_type), c.compute == KV_COMPUTE_FAST ? "fast" : "exact",
              deviation.relative_rms, bound, deviation.max);
  EXPECT_LT(deviation.relative_rms, bound);
  if (c.compute == KV_COMPUTE_EXACT && c.k_type == KV_TYPE_F32) {
    const auto top = [](const float* row) { return std::max_element(row, row + 512) - row; };
    EXPECT_EQ(top(&got[23 * 512]), top(&want[23 * 512]));
  }
}

std::vector<Case> cases() {
  const std::vector<std::string> models = {"stories260K-f32",
                                           "stories260K-f16",
                                           "stories260K-bf16",
                                           "stories260K-q8_0",
                                           "stories260K-q4_0",
                                           "stories260K-q4_1",
                                           "stories260K-q5_1",
                                           "stories260K-iq4_nl",
                                           "stories260K-q4_k_s",
                                           "tiny-llama-gqa-f32",
                                           "tiny-llama-gqa-d256-f32",
                                           "tiny-llama-gqa-d256-f16",
                                           "tiny-llama-gqa-d256-q8_0",
                                           "tiny-llama-gqa-d256-q4_0",
                                           "tiny-llama-gqa-d256-q4_1",
                                           "tiny-llama-gqa-d256-q5_0",
                                           "tiny-llama-gqa-d256-q2_k",
                                           "tiny-llama-gqa-d256-q3_k_s",
                                           "tiny-llama-gqa-d256-q4_k_m",
                                           "tiny-llama-gqa-d256-q5_k_s",
                                           "tiny-llama-gqa-d256-q6_k",
                                           "tiny-llama-gqa-d256-iq4_nl",
                                           "tiny-llama-gqa-d256-iq4_xs",
                                           "tiny-llama-rope-linear-f32",
                                           "tiny-llama-rope-llama3-f32",
                                           "tiny-qwen2-f32",
                                           "tiny-qwen3-f32"};
  std::vector<Case> all;
  for (const std::string& model : models) {
    for (const std::string& backend : backends()) {
      all.push_back({model, backend, KV_TYPE_F32, KV_COMPUTE_EXACT});
      all.push_back({model, backend, KV_TYPE_F16, KV_COMPUTE_EXACT});
      if (backend == "cpu") {
        all.push_back({model, backend, KV_TYPE_BF16, KV_COMPUTE_EXACT});
        all.push_back({model, backend, KV_TYPE_F16, KV_COMPUTE_FAST});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(cases()), [](const auto& p) {
  std::string name = p.param.model + "_" + p.param.backend + "_" + kv_type_name(p.param.k_type) +
                     (p.param.compute == KV_COMPUTE_FAST ? "_fast" : "_exact");
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

// The real model's greedy story, token by token.
class Story : public testing::TestWithParam<std::string> {};

TEST_P(Story, GreedyTokensAreTheRecordedOnes) {
  const std::string path = shared_file("models/stories260K-f32.gguf");
  if (path.empty()) GTEST_SKIP() << "the model stories260K-f32 is not here (KVASIR_SHARED)";
  const Json story = Json::parse(std::ifstream(shared_file("models/expected/stories260K-f32.story.json")));
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), path);
  kv_context_options options = sized<kv_context_options>();
  options.device = GetParam().c_str();
  options.k_type = options.v_type = KV_TYPE_F32;
  options.max_tokens = 256;  // more than the file says the model was trained for
  const ContextPtr context = make_context(model.get(), options);
  const std::vector<int32_t> prompt = story.at("prompt_ids");
  const std::vector<int32_t> greedy = story.at("greedy");
  std::vector<float> logits = prefill(context.get(), KV_DEFAULT_SEQUENCE, prompt);
  for (size_t i = 0; i < greedy.size(); i++) {
    ASSERT_FALSE(logits.empty());
    const auto token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    ASSERT_EQ(token, greedy[i]) << "token " << i;
    if (i + 1 < greedy.size()) logits = decode(context.get(), KV_DEFAULT_SEQUENCE, token);
  }
}
INSTANTIATE_TEST_SUITE_P(Backends, Story, testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
