// SPDX-License-Identifier: MIT
//
// Logits have the same bits on every instruction set of the cpu backend, for the pairs in the table: each variant this
// machine has is forced in turn and compared with "scalar".
#include <cstring>

#include "support/isa_pairs.h"
#include "support/random_model.h"
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

std::vector<float> logits(kv_model* model, const char* variant, const IsaPair& pair, uint32_t compute) {
  kv_context_options o = sized<kv_context_options>();
  o.device = "cpu";
  o.variant = variant;
  o.k_type = o.v_type = pair.cache_type;
  o.compute_mode = compute;
  o.max_tokens = 512;
  Error e;
  kv_context* handle = nullptr;
  const kv_status status = kv_context_create(model, &o, &handle, &e);
  if (status == KV_UNSUPPORTED) return {};  // the machine lacks the instructions
  EXPECT_EQ(status, KV_OK) << e.message;
  const ContextPtr context(handle);
  std::vector<float> last = prefill(context.get(), 0, random_tokens(300, 64, 5));
  for (int32_t t = 0; t < 5; t++) last = decode(context.get(), 0, t);
  return last;
}

class Isa : public ::testing::TestWithParam<const char*> {};

TEST_P(Isa, SameBitsAsScalar) {
  const RuntimePtr runtime = make_runtime();
  for (const IsaPair& pair : kIsaPairs) {
    ModelConfig config = testing::small_config();
    config.dim = config.ffn_dim = 256;
    config.context_length = 512;
    const std::vector<uint8_t> file = testing::random_gguf(config, pair.weight_type, 3);
    Error e;
    kv_model* handle = nullptr;
    OK(kv_model_load_memory(runtime.get(), file.data(), file.size(), nullptr, &handle, &e));
    const ModelPtr model(handle);
    for (const uint32_t compute : {KV_COMPUTE_EXACT, KV_COMPUTE_FAST}) {
      const std::vector<float> got = logits(model.get(), GetParam(), pair, compute);
      if (got.empty()) GTEST_SKIP() << "this machine does not have " << GetParam();
      const std::vector<float> want = logits(model.get(), "scalar", pair, compute);
      ASSERT_EQ(want.size(), 64U);
      EXPECT_EQ(0, std::memcmp(got.data(), want.data(), want.size() * sizeof(float)))
          << kv_type_name(pair.weight_type) << " weights, " << kv_type_name(pair.cache_type) << " cache, "
          << (compute == KV_COMPUTE_FAST ? "fast" : "exact");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Isa, ::testing::Values("avx2", "avx512"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace kvasir::test
