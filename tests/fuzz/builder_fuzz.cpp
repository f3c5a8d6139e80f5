// SPDX-License-Identifier: MIT
//
// Models from any configuration and tensors: the builder refuses them with a sentence, or what it makes runs. Most
// tensors are what the configuration asks for, so that the inputs get as far as running.
#include <string>
#include <vector>

#include "fuzz/host.h"

namespace {

using namespace kvasir::fuzz;

constexpr uint64_t kMostValues = 4096;  // of a tensor

kv_model_config read_config(Bytes* bytes) {
  kv_model_config c = sized<kv_model_config>();
  const bool wild = bytes->below(4) == 0;
  const auto width = [&](uint32_t most) { return wild ? bytes->u32() : 1 + bytes->below(most); };
  c.layers = width(3);
  c.heads = width(4);
  c.kv_heads = wild ? bytes->u32() : (bytes->flag() ? c.heads : 1);
  c.head_dim = wild ? bytes->u32() : 2 * bytes->below(5);
  c.dim = wild ? bytes->u32() : c.heads * (1 + bytes->below(8));
  c.ffn_dim = wild ? bytes->u32() : bytes->below(20);
  c.vocab = wild ? bytes->u32() : bytes->below(40);
  c.context_length = bytes->u32();
  c.norm = bytes->below(wild ? 3 : 2);
  c.norm_epsilon = bytes->real();
  c.activation = bytes->below(wild ? 5 : 4);
  c.attention_scale = bytes->real();
  c.rope = bytes->below(wild ? 4 : 3);
  c.rope_dims = wild ? bytes->u32() : 0;
  c.rope_theta = bytes->real();
  c.no_residual = bytes->below(wild ? 3 : 2);
  c.no_output_projection = bytes->below(wild ? 3 : 1);
  c.window = bytes->flag() ? bytes->u32() : 0;
  c.reserved = wild && bytes->below(8) == 0 ? 1 : 0;
  return c;
}

// One tensor, as asked for or with one thing changed.
void add(kv_model_builder* builder, Bytes* bytes, std::string name, uint64_t rows, uint64_t width) {
  uint32_t type = KV_TYPE_F32;
  uint64_t extra = 0;
  const uint8_t choice = bytes->u8();
  switch (choice < 192 ? 0 : choice % 8) {
    case 1: return;
    case 2: name += bytes->text(); break;
    case 3: type = bytes->u8(); break;
    case 4: rows = bytes->u32(); break;
    case 5: width = bytes->u32(); break;
    case 6: extra = bytes->number(); break;
    default: break;
  }
  if (rows > kMostValues || width > kMostValues || rows * width > kMostValues) return;
  const float value = bytes->real();
  const std::vector<float> data(rows * width + 1, value);
  const size_t size = std::min<uint64_t>((rows * width + extra) * sizeof(float), data.size() * sizeof(float));
  Error e;
  (void)judged(kv_model_builder_add(builder, name.c_str(), type, static_cast<uint32_t>(rows),
                                    static_cast<uint32_t>(width), data.data(), size, &e),
               e);
}

void add_layer(kv_model_builder* builder, Bytes* bytes, const kv_model_config& c, const std::string& prefix) {
  const uint64_t head_dim = c.head_dim != 0 ? c.head_dim : c.dim / c.heads;
  const uint64_t q = c.heads * head_dim;
  const uint64_t kv = (c.kv_heads != 0 ? c.kv_heads : c.heads) * head_dim;
  add(builder, bytes, prefix + "attn_norm.weight", 1, c.dim);
  add(builder, bytes, prefix + "attn_q.weight", q, c.dim);
  add(builder, bytes, prefix + "attn_k.weight", kv, c.dim);
  add(builder, bytes, prefix + "attn_v.weight", kv, c.dim);
  if (bytes->flag()) add(builder, bytes, prefix + "attn_q.bias", 1, q);
  if (bytes->flag()) add(builder, bytes, prefix + "attn_q_norm.weight", 1, head_dim);
  if (bytes->flag()) add(builder, bytes, prefix + "attn_k_norm.weight", 1, head_dim);
  add(builder, bytes, prefix + "attn_output.weight", c.dim, q);
  if (c.ffn_dim == 0) return;
  add(builder, bytes, prefix + "ffn_norm.weight", 1, c.dim);
  add(builder, bytes, prefix + "ffn_gate.weight", c.ffn_dim, c.dim);
  add(builder, bytes, prefix + "ffn_up.weight", c.ffn_dim, c.dim);
  add(builder, bytes, prefix + "ffn_down.weight", c.dim, c.ffn_dim);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const kv_model_config config = read_config(&bytes);
  kv_model_builder* made = nullptr;
  Error e;
  if (judged(kv_model_builder_create(runtime(), &config, &made, &e), e) != KV_OK) return 0;
  const BuilderPtr builder(made);
  if (config.vocab != 0) add(made, &bytes, "token_embd.weight", config.vocab, config.dim);
  add(made, &bytes, "output_norm.weight", 1, config.dim);
  if (bytes.flag()) add(made, &bytes, "output.weight", config.vocab, config.dim);
  for (uint32_t layer = 0; layer < std::min(config.layers, 4U); ++layer) {
    add_layer(made, &bytes, config, "blk." + std::to_string(layer) + ".");
  }
  kv_model* finished = nullptr;
  const kv_status status = judged(kv_model_builder_finish(made, &finished, &e), e);
  KV_REQUIRE((status == KV_OK) == (finished != nullptr));
  if (finished == nullptr) return 0;
  const ModelPtr model(finished);
  run_model(model.get());
  return 0;
}
