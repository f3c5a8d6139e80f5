// SPDX-License-Identifier: MIT
//
// Three copies of the library in one process: one is part of this program, two are opened from two paths. Each runs the
// same small model; one goes, and the others carry on. (Case P23.)
#include <dlfcn.h>

#include "support.h"
#include "support/toy_model.h"

#define KV_FUNCTIONS(X)                                                                              \
  X(kv_runtime_create)                                                                               \
  X(kv_runtime_release)                                                                              \
  X(kv_model_builder_create)                                                                         \
  X(kv_model_builder_add) X(kv_model_builder_finish) X(kv_model_builder_release) X(kv_model_release) \
      X(kv_context_create) X(kv_context_release) X(kv_prefill) X(kv_version)

namespace kvasir::test {
namespace {

// The functions of one copy of the library.
struct Copy {
#define X(name) decltype(&::name) name = nullptr;
  KV_FUNCTIONS(X)
#undef X
  void* library = nullptr;
};

Copy own_copy() {
  Copy copy;
#define X(name) copy.name = &::name;
  KV_FUNCTIONS(X)
#undef X
  return copy;
}

Copy opened_copy(const std::string& path) {
  Copy copy;
  copy.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (copy.library == nullptr) throw std::runtime_error(dlerror());
#define X(name) copy.name = reinterpret_cast<decltype(copy.name)>(dlsym(copy.library, #name));
  KV_FUNCTIONS(X)
#undef X
  return copy;
}

// A runtime, the small model of case F3 and a context in one copy.
class World {
 public:
  World(const Copy& copy, const char* device) : copy_(copy) {
    kv_runtime_options options = sized<kv_runtime_options>();
    options.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
    options.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
    check(copy_.kv_runtime_create(&options, &runtime_, &e_));
    build();
    kv_context_options o = sized<kv_context_options>();
    o.device = device;
    check(copy_.kv_context_create(model_, &o, &context_, &e_));
  }
  ~World() {
    copy_.kv_context_release(context_);
    copy_.kv_model_release(model_);
    copy_.kv_runtime_release(runtime_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::vector<float> append(const std::vector<int32_t>& tokens) {
    kv_step_result result = sized<kv_step_result>();
    check(copy_.kv_prefill(context_, KV_DEFAULT_SEQUENCE, tokens.data(), tokens.size(), nullptr, &result, &e_));
    return {result.rows, result.rows + result.width};
  }

 private:
  void check(kv_status status) {
    if (status != KV_OK) throw std::runtime_error(e_.message);
  }

  void add(kv_model_builder* builder, const std::string& name, uint32_t rows, uint32_t width) {
    std::vector<float> data(size_t{rows} * width, 1.0F);
    for (float& x : data) {
      if (rows == 1) break;  // norms
      state_ = state_ * 1664525 + 1013904223;
      x = (static_cast<float>(state_ >> 8) / 8388608.0F - 1.0F) * 0.3F;
    }
    check(copy_.kv_model_builder_add(builder, name.c_str(), KV_TYPE_F32, rows, width, data.data(),
                                     data.size() * sizeof(float), &e_));
  }

  void build() {
    const kv_model_config c = small_config();
    kv_model_builder* builder = nullptr;
    check(copy_.kv_model_builder_create(runtime_, &c, &builder, &e_));
    add(builder, "token_embd.weight", c.vocab, c.dim);
    for (uint32_t layer = 0; layer < c.layers; ++layer) {
      const std::string p = "blk." + std::to_string(layer) + ".";
      for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) add(builder, p + norm, 1, c.dim);
      add(builder, p + "attn_q.weight", c.heads * c.head_dim, c.dim);
      for (const char* kv : {"attn_k.weight", "attn_v.weight"}) add(builder, p + kv, c.kv_heads * c.head_dim, c.dim);
      add(builder, p + "attn_output.weight", c.dim, c.heads * c.head_dim);
      for (const char* up : {"ffn_gate.weight", "ffn_up.weight"}) add(builder, p + up, c.ffn_dim, c.dim);
      add(builder, p + "ffn_down.weight", c.dim, c.ffn_dim);
    }
    add(builder, "output_norm.weight", 1, c.dim);
    add(builder, "output.weight", c.vocab, c.dim);
    check(copy_.kv_model_builder_finish(builder, &model_, &e_));
    copy_.kv_model_builder_release(builder);
  }

  const Copy copy_;
  Error e_;
  uint32_t state_ = 7;
  kv_runtime* runtime_ = nullptr;
  kv_model* model_ = nullptr;
  kv_context* context_ = nullptr;
};

bool still_mapped(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr; }

TEST(TwoCopies, SideBySideAndOneGoes) {
  Scratch scratch;
  std::string paths[2];
  for (const char* name : {"a", "b"}) {
    std::string& path = paths[name[0] - 'a'];
    path = scratch.directory(name) + "/libkvasir.so.0";
    std::filesystem::copy_file(KV_TEST_LIBRARY, path);
  }
  Copy a = opened_copy(paths[0]), b = opened_copy(paths[1]);
  const Copy own = own_copy();
  EXPECT_NE(a.kv_prefill, own.kv_prefill);
  EXPECT_NE(a.kv_prefill, b.kv_prefill);
  EXPECT_EQ(a.kv_version(), own.kv_version());
  for (const char* device : {"ref", "cpu"}) {
    World in_own(own, device), in_b(b, device);
    auto in_a = std::make_unique<World>(a, device);
    const std::vector<float> logits = in_own.append({1, 2, 3});
    EXPECT_EQ(in_a->append({1, 2, 3}), logits);
    EXPECT_EQ(in_b.append({1, 2, 3}), logits);
    in_a.reset();
    ASSERT_EQ(dlclose(a.library), 0);
    EXPECT_FALSE(still_mapped(paths[0])) << "the first copy is gone";
    const std::vector<float> next = in_own.append({4});
    EXPECT_EQ(in_b.append({4}), next);
    EXPECT_NE(next, logits);
    a = opened_copy(paths[0]);
    EXPECT_EQ(World(a, device).append({1, 2, 3, 4}), next) << "it comes back, and agrees";
  }
}

}  // namespace
}  // namespace kvasir::test
