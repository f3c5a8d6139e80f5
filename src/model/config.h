// SPDX-License-Identifier: MIT
//
// ModelConfig: everything that is known about a decoder but its weights, for all families in one struct. Read it top to
// bottom and you know the models. Made by config_from_gguf or by the builder of the public API; checked by validate.
//
// A bias is not a matter of configuration: where the weights hold "x.bias" beside "x.weight", it is added.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kvasir {

class Gguf;

enum class NormKind : uint8_t { none, rms, layer };
enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu };  // gelu is the exact one (erf)
enum class FfnKind : uint8_t {
  none,
  plain,  // down(act(up(x)))
  gated   // down(act(gate(x)) * up(x))
};
enum class RopePairing : uint8_t {
  none,
  adjacent,  // dimensions (2i, 2i+1) turn together: llama files, whose weights are permuted for it
  halves     // dimensions (i, i + dims/2) turn together: qwen2, qwen3, most others
};
enum class RopeScaling : uint8_t { none, linear, yarn, llama3 };

// Pair i of a token at position p turns by p * frequency(i), frequency(i) = theta^(-2i/dims), then scaled.
struct RopeConfig {
  RopePairing pairing = RopePairing::none;
  uint32_t dims = 0;  // rotated dimensions of each head, the first ones; even, at most head_dim
  float theta = 10000.0F;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0F;                 // linear, yarn, llama3: how many times longer than trained
  uint32_t original_context = 0;       // yarn, llama3: the trained length
  float yarn_attention_factor = 1.0F;  // extra magnitude, on top of yarn's own 1 + 0.1 ln(factor)
  float yarn_beta_fast = 32.0F;
  float yarn_beta_slow = 1.0F;
  float llama3_low_frequency_factor = 1.0F;
  float llama3_high_frequency_factor = 4.0F;
  // A tensor [dims/2] that DIVIDES the frequencies ("rope_freqs.weight": llama 3.1's scaling, already worked out in
  // GGUF files); empty when there is none.
  std::string factors_tensor;
};

// Mixtures of experts: llama (Mixtral), qwen2moe, qwen3moe, deepseek2. count == 0: no experts.
struct ExpertConfig {
  uint32_t count = 0;
  uint32_t used = 0;          // experts per token
  uint32_t ffn_dim = 0;       // of one expert
  uint32_t shared = 0;        // experts that see every token (deepseek2, qwen2moe)
  uint32_t dense_layers = 0;  // leading layers with an ordinary FFN (deepseek2)
  bool normalize = true;      // the weights of the used experts sum to 1
  bool sigmoid = false;       // the router uses sigmoid instead of softmax
  float scale = 1.0F;         // multiplies the routed sum
};

// Latent attention (deepseek2): K and V are projections of one cached row of kv_rank + rope_dims. kv_rank == 0: none.
struct LatentConfig {
  uint32_t q_rank = 0;  // 0: queries come straight from the hidden row
  uint32_t kv_rank = 0;
  uint32_t rope_dims = 0;
};

struct ModelConfig {
  std::string architecture;  // "llama", "qwen2", ...; picks the family in src/arch
  std::string name;          // for people; may be empty

  uint32_t layers = 0;
  uint32_t dim = 0;             // width of the hidden row
  uint32_t heads = 0;           // query heads
  uint32_t kv_heads = 0;        // divides heads; each serves heads / kv_heads query heads
  uint32_t head_dim = 0;        // width of a query and key head; need not be dim / heads (qwen3)
  uint32_t v_head_dim = 0;      // width of a value head; equals head_dim but for deepseek2
  uint32_t ffn_dim = 0;         // width inside the FFN
  uint32_t vocab = 0;           // rows of the embedding and of the output head; 0 when there is neither
  uint32_t context_length = 0;  // tokens the model was trained for; 0: not known

  // Values that differ by layer; empty: the one above for all (window: no window). [layers]
  std::vector<uint32_t> layer_heads;
  std::vector<uint32_t> layer_kv_heads;
  std::vector<uint32_t> layer_ffn_dim;
  std::vector<uint32_t> layer_window;  // positions a token sees, itself included; 0: all (gemma2, gemma3)

  // The hidden row: in and out.
  bool embedding = true;         // token ids can go in ("token_embd.weight"); else embedding rows only
  float embedding_scale = 1.0F;  // multiplies the looked-up row (gemma: sqrt(dim))
  bool output = true;            // logits come out; else hidden rows only
  bool tied_output = false;      // the output head is the embedding table
  float logit_softcap = 0.0F;    // cap * tanh(x / cap); 0: none (gemma2)

  // Around the blocks.
  NormKind norm = NormKind::rms;  // before attention, before FFN and at the end
  float norm_eps = 1e-5F;
  bool post_norm = false;  // also after attention and FFN, before the residual (gemma2, gemma3)
  bool residual = true;

  // Attention: softmax(scale * q k) v.
  float attention_scale = 0.0F;    // 0: 1 / sqrt(head_dim)
  float attention_softcap = 0.0F;  // on the scaled scores; 0: none (gemma2)
  bool qk_norm = false;            // RMS norm of each query and key head before rope (qwen3, gemma3)
  bool attention_output = true;    // the projection "attn_output"; else the heads side by side are the result
  RopeConfig rope;
  RopeConfig rope_local;  // of the layers with a window, when pairing != none (gemma3); else `rope` everywhere

  // Feed-forward.
  FfnKind ffn = FfnKind::gated;
  Activation activation = Activation::silu;

  ExpertConfig experts;
  LatentConfig latent;

  uint32_t heads_at(uint32_t layer) const { return layer_heads.empty() ? heads : layer_heads[layer]; }
  uint32_t kv_heads_at(uint32_t layer) const { return layer_kv_heads.empty() ? kv_heads : layer_kv_heads[layer]; }
  uint32_t ffn_dim_at(uint32_t layer) const { return layer_ffn_dim.empty() ? ffn_dim : layer_ffn_dim[layer]; }
  uint32_t window_at(uint32_t layer) const { return layer_window.empty() ? 0 : layer_window[layer]; }
};

// Refuses what no model can be: nothing, too much, parts that do not fit together. KV_INVALID_ARGUMENT and a sentence.
// A config that passes can be multiplied out without overflow: every product of two widths fits 64 bits.
Status validate(const ModelConfig& config);

// Reads and validates the configuration of a supported family (llama, qwen2, qwen3). KV_UNSUPPORTED names the
// architecture when it is another; contradictions are KV_CORRUPT and name the key.
Status config_from_gguf(const Gguf& gguf, ModelConfig* out);

}  // namespace kvasir
