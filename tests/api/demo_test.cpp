// SPDX-License-Identifier: MIT
//
// The bundled model from text to text, against a float64 forward over its dequantised weights (expected.json): token ids of
// prompts, logits, greedy continuations while the oracle's choice is clear, and their text.
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/bounds.h"
#include "support/kv.h"

namespace kvasir::test {
namespace {

using Json = nlohmann::json;

class Demo : public testing::TestWithParam<std::string> {};

std::vector<int32_t> tokenize(const kv_tokenizer* tokenizer, const std::string& text) {
  Error e;
  std::vector<int32_t> tokens(text.size() + 8);
  size_t count = 0;
  EXPECT_EQ(kv_tokenize(tokenizer, text.data(), text.size(), KV_TOKENIZE_ADD_SPECIAL, tokens.data(), tokens.size(),
                        &count, &e),
            KV_OK)
      << e.message;
  tokens.resize(count);
  return tokens;
}

std::string detokenize(const kv_tokenizer* tokenizer, const std::vector<int32_t>& tokens) {
  Error e;
  std::string text(16 * tokens.size() + 16, '\0');
  size_t length = 0;
  EXPECT_EQ(kv_detokenize(tokenizer, tokens.data(), tokens.size(), 0, text.data(), text.size(), &length, &e), KV_OK)
      << e.message;
  text.resize(length);
  return text;
}

TEST_P(Demo, TextIsTheOracles) {
  const Json expected = Json::parse(std::ifstream(demo_model().substr(0, demo_model().rfind('/')) + "/expected.json"));
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = load_model(runtime.get(), demo_model());
  ASSERT_TRUE(model);
  const kv_tokenizer* tokenizer = kv_model_tokenizer(model.get());
  kv_context_options options = sized<kv_context_options>();
  options.device = GetParam().c_str();
  options.k_type = options.v_type = KV_TYPE_F32;
  options.compute_mode = KV_COMPUTE_EXACT;
  ASSERT_FALSE(expected.at("prompts").empty());
  for (const Json& prompt : expected.at("prompts")) {
    const ContextPtr context = make_context(model.get(), options);
    std::vector<int32_t> tokens = tokenize(tokenizer, prompt.at("prompt"));
    EXPECT_EQ(tokens, prompt.at("prompt_ids").get<std::vector<int32_t>>());
    std::vector<float> logits = prefill(context.get(), 0, tokens);
    ASSERT_EQ(logits.size(), 1024U);
    for (const Json& top : prompt.at("top5")) {
      // Logits of this model have a spread of about 4: single ones within 20 times the rms bound.
      EXPECT_NEAR(logits[top[0]], top[1], 20 * 4 * logits_bound(KV_COMPUTE_EXACT, KV_TYPE_F32));
    }
    const std::vector<int32_t> greedy = prompt.at("greedy");
    const std::vector<double> gaps = prompt.at("greedy_gap");
    size_t followed = 0;
    while (followed < greedy.size() && gaps[followed] > 2e-3) {
      const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      ASSERT_EQ(best, greedy[followed]) << "token " << followed << " after '" << prompt.at("prompt") << "'";
      tokens.push_back(best);
      followed++;
      if (followed < greedy.size()) logits = decode(context.get(), 0, best);
    }
    EXPECT_GT(followed, 3U);
    const std::string text = prompt.at("text");
    const std::string got = detokenize(tokenizer, tokens);
    EXPECT_EQ(got, text.substr(0, got.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Demo, testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
