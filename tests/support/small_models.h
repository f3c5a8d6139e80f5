// SPDX-License-Identifier: MIT
//
// The smallest whole models, as files in memory: what tests damage in every place.
#pragma once

#include <string>
#include <vector>

#include "support/random_model.h"

namespace kvasir::testing {

// One layer, 4 wide, 10 tokens; rotary pairs by family.
inline ModelConfig tiny_config(const std::string& architecture) {
  ModelConfig config = small_config();
  config.architecture = architecture;
  config.layers = 1;
  config.dim = 4;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = config.v_head_dim = 2;
  config.rope.dims = 2;
  config.rope.pairing = architecture == "llama" ? RopePairing::adjacent : RopePairing::halves;
  config.qk_norm = architecture == "qwen3";
  config.ffn_dim = 4;
  config.vocab = 10;
  config.context_length = 16;
  return config;
}

// Ten tokens in SentencePiece style: what is no "a", "b" or space is unknown.
inline void add_spm_vocabulary(GgufWriter* writer) {
  const std::string mark = "\xE2\x96\x81";
  writer->string("tokenizer.ggml.model", "llama");
  writer->strings("tokenizer.ggml.tokens",
                  {"<unk>", "<s>", "</s>", mark, "a", "b", "ab", "<end>", "<0x0A>", mark + "a"});
  writer->f32s("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3, -4, 0, 0, -5});
  writer->i32s("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1, 3, 6, 1});
  writer->u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  writer->u32("tokenizer.ggml.unknown_token_id", 0).boolean("tokenizer.ggml.add_bos_token", true);
}

// Ten byte-level tokens: text of a, b, c, spaces and line ends.
inline void add_bpe_vocabulary(GgufWriter* writer) {
  writer->string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "llama-bpe");
  writer->strings("tokenizer.ggml.tokens", {"a", "b", "c", "ab", "abc", "<end>", "<tab>", "\xC4\xA0", "\xC4\x8A",
                                            "\xC4\xA0"
                                            "a"});
  writer->strings("tokenizer.ggml.merges", {"a b", "ab c", "\xC4\xA0 a"});
  writer->i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 3, 4, 1, 1, 1});
  writer->u32("tokenizer.ggml.eos_token_id", 5).boolean("tokenizer.ggml.add_bos_token", false);
}

inline std::vector<uint8_t> tiny_llama() {
  ModelConfig config = tiny_config("llama");
  config.rope.scaling = RopeScaling::yarn;
  config.rope.factor = 2.0F;
  config.rope.original_context = 8;
  return random_gguf(config, KV_TYPE_F32, 1, false, add_spm_vocabulary);
}

inline std::vector<uint8_t> tiny_qwen2() {
  return random_gguf(tiny_config("qwen2"), KV_TYPE_F16, 2, true, add_bpe_vocabulary);
}

inline std::vector<uint8_t> tiny_qwen3() {
  ModelConfig config = tiny_config("qwen3");
  config.dim = config.ffn_dim = 32;
  config.head_dim = config.v_head_dim = 16;
  config.rope.dims = 16;
  return random_gguf(config, KV_TYPE_Q4_0, 3);
}

// tiny_llama's shape in `count` files.
inline std::vector<std::vector<uint8_t>> tiny_pieces(uint16_t count) {
  const ModelConfig config = tiny_config("llama");
  const std::vector<RandomTensor> tensors = random_tensors(config, KV_TYPE_F32, 4);
  std::vector<std::vector<uint8_t>> pieces;
  for (uint16_t number = 0; number < count; ++number) {
    GgufWriter writer = number == 0 ? gguf_keys(config) : GgufWriter();
    writer.u16("split.no", number).u16("split.count", count);
    writer.i32("split.tensors.count", static_cast<int32_t>(tensors.size()));
    for (size_t i = number; i < tensors.size(); i += count) {
      const TensorInfo& info = tensors[i].info;
      writer.tensor(info.name, info.type, {info.dims, info.dims + info.dim_count}, tensors[i].data);
    }
    pieces.push_back(writer.bytes());
  }
  return pieces;
}

}  // namespace kvasir::testing
