// SPDX-License-Identifier: MIT
//
// The long tier of promise 3: no drawing, everything against everything. Every weight type, pair of cache types, compute
// mode, variant, thread count, page size and chunk size gives the bits of one plain prefill.
#include <cstring>

#include "support/random_model.h"
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

struct Route {
  uint32_t threads = 1, page_tokens = 0, batch = 0;
  size_t chunk = SIZE_MAX;
};

std::vector<float> run(kv_model* model, kv_context_options o, const Route& route, const std::vector<int32_t>& tokens) {
  o.threads = route.threads;
  o.page_tokens = route.page_tokens;
  o.max_batch_tokens = route.batch;
  const ContextPtr context = make_context(model, o);
  std::vector<float> last;
  for (size_t at = 0; at < tokens.size();) {
    const size_t end = at + std::min(route.chunk, tokens.size() - at);
    last = prefill(context.get(), 0,
                   {tokens.begin() + static_cast<ptrdiff_t>(at), tokens.begin() + static_cast<ptrdiff_t>(end)});
    at = end;
  }
  return last;
}

TEST(Product, EverythingAgainstEverything) {
  const RuntimePtr runtime = make_runtime();
  const std::vector<int32_t> tokens = random_tokens(37, 64, 9);
  const uint32_t caches[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0};
  size_t checked = 0;
  for (const uint32_t type :
       {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0, KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K}) {
    ModelConfig config = testing::small_config();
    config.dim = config.ffn_dim = 256;
    config.context_length = 64;
    const std::vector<uint8_t> file = testing::random_gguf(config, type, 4);
    Error e;
    kv_model* handle = nullptr;
    OK(kv_model_load_memory(runtime.get(), file.data(), file.size(), nullptr, &handle, &e));
    const ModelPtr model(handle);
    for (const uint32_t k : caches) {
      for (const uint32_t v : caches) {
        for (const uint32_t compute : {KV_COMPUTE_EXACT, KV_COMPUTE_FAST}) {
          for (const char* variant : {static_cast<const char*>(nullptr), "scalar"}) {
            kv_context_options o = sized<kv_context_options>();
            o.device = "cpu";
            o.variant = variant;
            o.k_type = k;
            o.v_type = v;
            o.compute_mode = compute;
            o.max_tokens = 64;
            const std::vector<float> want = run(model.get(), o, {}, tokens);
            ASSERT_EQ(want.size(), 64U);
            for (const uint32_t threads : {1U, 2U, 3U}) {
              for (const uint32_t page : {1U, 4U, 16U, 256U}) {
                for (const size_t chunk : {size_t{1}, size_t{3}, size_t{16}, SIZE_MAX}) {
                  const std::vector<float> got = run(model.get(), o, {threads, page, 7, chunk}, tokens);
                  ASSERT_EQ(got.size(), want.size());
                  ASSERT_EQ(0, std::memcmp(got.data(), want.data(), want.size() * sizeof(float)))
                      << kv_type_name(type) << " " << kv_type_name(k) << "/" << kv_type_name(v) << " compute "
                      << compute << " threads " << threads << " page " << page << " chunk " << chunk;
                  checked++;
                }
              }
            }
          }
        }
      }
    }
    std::printf("%s: %zu routes had the same bits so far\n", kv_type_name(type), checked);
  }
  EXPECT_EQ(checked, 7U * 4 * 4 * 2 * 2 * 3 * 4 * 4);
}

}  // namespace
}  // namespace kvasir::test
