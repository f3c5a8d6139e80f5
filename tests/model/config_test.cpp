// SPDX-License-Identifier: MIT
//
// validate: a table of what is refused, each with the words of its sentence, and of unusual models that are fine.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/random_model.h"

namespace kvasir {
namespace {

using testing::small_config;

void expect_refused(const char* part, const std::function<void(ModelConfig*)>& edit) {
  ModelConfig config = small_config();
  edit(&config);
  const Status status = validate(config);
  EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT) << part;
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
      << "said: " << status.message() << "\nexpected: " << part;
}

void expect_fine(const std::function<void(ModelConfig*)>& edit) {
  ModelConfig config = small_config();
  edit(&config);
  const Status status = validate(config);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Config, RefusesAbsurdWidths) {
  using C = ModelConfig;
  expect_refused("names no architecture", [](C* c) { c->architecture = ""; });
  expect_refused("the number of layers is 0", [](C* c) { c->layers = 0; });
  expect_refused("the number of layers is 65536", [](C* c) { c->layers = 65536; });
  expect_refused("dim is 0", [](C* c) { c->dim = 0; });
  expect_refused("dim is 16777217", [](C* c) { c->dim = (1U << 24) + 1; });
  expect_refused("the number of heads is 0", [](C* c) { c->heads = 0; });
  expect_refused("the number of kv heads is 0", [](C* c) { c->kv_heads = 0; });
  expect_refused("3 heads, which 2 kv heads cannot share evenly", [](C* c) { c->heads = 3; });
  expect_refused("2 heads, which 4 kv heads", [](C* c) { c->heads = 2, c->kv_heads = 4; });
  expect_refused("head_dim is 0", [](C* c) { c->head_dim = 0; });
  expect_refused("v_head_dim is 0", [](C* c) { c->v_head_dim = 0; });
  expect_refused("heads times head_dim is 67108864", [](C* c) { c->head_dim = 1U << 24; });
  expect_refused("ffn_dim is 0", [](C* c) { c->ffn_dim = 0; });
  expect_refused("vocab is 0", [](C* c) { c->vocab = 0; });
  expect_refused("vocab is 4294967295", [](C* c) { c->vocab = UINT32_MAX; });
}

TEST(Config, RefusesNumbersThatAreNone) {
  using C = ModelConfig;
  expect_refused("the epsilon of the norms is not a number", [](C* c) { c->norm_eps = NAN; });
  expect_refused("the epsilon of the norms is negative", [](C* c) { c->norm_eps = -1e-6F; });
  expect_refused("the epsilon of the norms is infinite", [](C* c) { c->norm_eps = INFINITY; });
  expect_refused("the rope base is not a number", [](C* c) { c->rope.theta = NAN; });
  expect_refused("the rope base is zero", [](C* c) { c->rope.theta = 0.0F; });
  expect_refused("the rope base is negative", [](C* c) { c->rope.theta = -10000.0F; });
  expect_refused("the attention scale is negative", [](C* c) { c->attention_scale = -1.0F; });
  expect_refused("the attention scale is not a number", [](C* c) { c->attention_scale = NAN; });
  expect_refused("the embedding scale is zero", [](C* c) { c->embedding_scale = 0.0F; });
  expect_refused("the soft cap of the logits is infinite", [](C* c) { c->logit_softcap = INFINITY; });
  expect_refused("the soft cap of the scores is negative", [](C* c) { c->attention_softcap = -5.0F; });
}

TEST(Config, RefusesRopeThatDoesNotFit) {
  using C = ModelConfig;
  expect_refused("rope turns 0 dimensions", [](C* c) { c->rope.dims = 0; });
  expect_refused("rope turns 7 dimensions", [](C* c) { c->rope.dims = 7; });
  expect_refused("rope turns 10 dimensions", [](C* c) { c->rope.dims = 10; });
  expect_refused("local rope turns 9",
                 [](C* c) { c->rope_local.pairing = RopePairing::halves, c->rope_local.dims = 9; });
  expect_refused("the rope pairing is 9", [](C* c) { c->rope.pairing = static_cast<RopePairing>(9); });
  expect_refused("the rope scaling factor is zero", [](C* c) {
    c->rope.scaling = RopeScaling::linear;
    c->rope.factor = 0.0F;
  });
  expect_refused("without its original context length", [](C* c) { c->rope.scaling = RopeScaling::yarn; });
  expect_refused("beta_slow is greater", [](C* c) {
    c->rope.scaling = RopeScaling::yarn;
    c->rope.original_context = 64;
    c->rope.yarn_beta_slow = 64.0F;
  });
  expect_refused("is not below its high", [](C* c) {
    c->rope.scaling = RopeScaling::llama3;
    c->rope.original_context = 64;
    c->rope.llama3_low_frequency_factor = 4.0F;
  });
}

TEST(Config, RefusesPartsThatContradict) {
  using C = ModelConfig;
  expect_refused("tied to the embedding needs both", [](C* c) { c->tied_output = true, c->embedding = false; });
  expect_refused("has no output projection", [](C* c) { c->attention_output = false, c->v_head_dim = 4; });
  expect_refused("the number of kv heads is given for 1 layers", [](C* c) { c->layer_kv_heads = {2}; });
  expect_refused("the window is given for 3 layers, the model has 2", [](C* c) { c->layer_window = {1, 2, 3}; });
  expect_refused("layer 1 has 4 heads, which 3 kv heads", [](C* c) { c->layer_kv_heads = {2, 3}; });
  expect_refused("3 of 2 experts", [](C* c) { c->experts.count = 2, c->experts.used = 3, c->experts.ffn_dim = 8; });
  expect_refused("0 of 2 experts", [](C* c) { c->experts.count = 2, c->experts.ffn_dim = 8; });
  expect_refused("ffn_dim of an expert is 0", [](C* c) { c->experts.count = 2, c->experts.used = 1; });
  expect_refused("experts but no feed-forward", [](C* c) { c->experts.count = 2, c->ffn = FfnKind::none; });
  expect_refused("rotated dimensions are more", [](C* c) { c->latent.kv_rank = 4, c->latent.rope_dims = 9; });
  expect_refused("the activation is 200", [](C* c) { c->activation = static_cast<Activation>(200); });
}

TEST(Config, AcceptsUnusualModels) {
  using C = ModelConfig;
  expect_fine([](C*) {});
  expect_fine([](C* c) { c->head_dim = 20, c->v_head_dim = 12, c->rope.dims = 4; });
  expect_fine([](C* c) { c->layers = 65535; });
  expect_fine([](C* c) { c->layer_window = {16, 0}; });
  expect_fine([](C* c) { c->norm_eps = 0.0F; });
  expect_fine([](C* c) { c->tied_output = true; });
  expect_fine([](C* c) { c->context_length = 0; });
}

// The worked examples: nothing but attention.
TEST(Config, AcceptsTheToyModel) {
  expect_fine([](ModelConfig* c) {
    c->layers = 1;
    c->dim = c->head_dim = c->v_head_dim = 2;
    c->heads = c->kv_heads = 1;
    c->vocab = c->ffn_dim = 0;
    c->embedding = c->output = c->residual = c->attention_output = false;
    c->norm = NormKind::none;
    c->ffn = FfnKind::none;
    c->rope = {};
    c->attention_scale = 1.0F;
  });
}

TEST(Config, LayersMayDiffer) {
  ModelConfig config = small_config();
  config.layer_heads = {4, 8};
  config.layer_kv_heads = {2, 4};
  config.layer_ffn_dim = {64, 96};
  config.layer_window = {16, 0};
  ASSERT_TRUE(validate(config).ok());
  EXPECT_EQ(config.heads_at(1), 8U);
  EXPECT_EQ(config.kv_heads_at(1), 4U);
  EXPECT_EQ(config.ffn_dim_at(0), 64U);
  EXPECT_EQ(config.ffn_dim_at(1), 96U);
  EXPECT_EQ(config.window_at(0), 16U);
  EXPECT_EQ(config.window_at(1), 0U);
  EXPECT_EQ(small_config().window_at(1), 0U);
}

}  // namespace
}  // namespace kvasir
