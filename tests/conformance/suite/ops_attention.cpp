// SPDX-License-Identifier: MIT
//
// KV_STORE and ATTENTION: head sizes and ratios, positions at the edges of pages and splits, every pair of cache types
// in both compute modes, windows, soft-cap, sinks, ALiBi, latent rows, scores of ten thousand.
#include "reference/quantize.h"
#include "suite/attention_case.h"
#include "suite/ops.h"

namespace kvasir::conformance {
namespace {

void add_case(std::vector<Case>& cases, Profile profile, const std::string& stem, const AttentionShape& shape) {
  const std::string name = "ops/ATTENTION/" + stem + shape_label(shape);
  cases.push_back({name, profile == Profile::kCore ? "KVB-16 KVB-19" : "KVB-12 KVB-16 KVB-19", profile,
                   [=](Subject& subject) { run_attention(subject, name, shape); }});
}

AttentionShape heads_of(uint32_t heads, uint32_t kv_heads, uint32_t dim) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.k_dim = shape.v_dim = dim;
  return shape;
}

AttentionShape at(AttentionShape shape, uint32_t history, uint32_t tokens, uint32_t page_tokens) {
  shape.history = history;
  shape.tokens = tokens;
  shape.page_tokens = page_tokens;
  return shape;
}

void add_core_cases(std::vector<Case>& cases) {
  const AttentionShape small = heads_of(4, 2, 16);
  // Position 0; inside, at the end of and behind a page; a prompt over several pages; around a split of 256.
  for (const uint32_t tokens : {1u, 2u, 3u, 5u, 7u, 16u, 17u, 33u})
    add_case(cases, Profile::kCore, "", at(small, 0, tokens, 16));
  for (const uint32_t history : {1u, 14u, 15u, 16u, 31u})
    add_case(cases, Profile::kCore, "", at(small, history, 1, 16));
  for (const uint32_t history : {254u, 255u, 256u, 257u})
    add_case(cases, Profile::kCore, "", at(small, history, 2, 64));
  add_case(cases, Profile::kCore, "", at(small, 250, 17, 256));
  add_case(cases, Profile::kCore, "", at(small, 511, 3, 32));
  for (const uint32_t dim : {64u, 80u, 96u, 128u, 256u}) {
    add_case(cases, Profile::kCore, "", at(heads_of(1, 1, dim), 30, 3, 16));
    add_case(cases, Profile::kCore, "", at(heads_of(8, 2, dim), 13, 5, 16));
    add_case(cases, Profile::kCore, "", at(heads_of(8, 1, dim), 40, 1, 16));
  }
  for (const uint32_t dim : {1u, 2u, 3u, 17u, 33u})
    add_case(cases, Profile::kCore, "", at(heads_of(6, 3, dim), 9, 7, 16));
  add_case(cases, Profile::kCore, "", at(heads_of(40, 1, 4), 20, 3, 16));
  // Scores of about 1e4: only the largest counts, and nothing overflows.
  AttentionShape sharp = at(small, 40, 5, 16);
  sharp.sharpness = 3000;
  add_case(cases, Profile::kCore, "", sharp);
  AttentionShape uneven = at(heads_of(2, 1, 24), 20, 3, 16);
  uneven.v_dim = 40;
  add_case(cases, Profile::kFull, "", uneven);
}

void add_type_cases(std::vector<Case>& cases) {
  for (uint32_t k_type = KV_TYPE_F32; k_type <= KV_TYPE_Q4_0; ++k_type) {
    for (uint32_t v_type = KV_TYPE_F32; v_type <= KV_TYPE_Q4_0; ++v_type) {
      for (const uint32_t mode : kModes) {
        const std::string stem =
            std::string(type_label(k_type)) + ":" + type_label(v_type) + "/" + mode_label(mode) + "/";
        const auto add = [&](AttentionShape shape) {
          shape.k_type = k_type;
          shape.v_type = v_type;
          shape.compute_mode = mode;
          add_case(cases, Profile::kFull, stem, shape);
        };
        add(at(heads_of(4, 1, 80), 19, 3, 16));
        if (k_type != v_type) continue;
        add(at(heads_of(8, 2, 128), 260, 1, 256));
        add(at(heads_of(2, 2, 17), 30, 17, 16));
        AttentionShape sharp = at(heads_of(2, 1, 64), 30, 5, 16);
        sharp.sharpness = 3000;
        add(sharp);
      }
    }
  }
}

void add_feature_cases(std::vector<Case>& cases) {
  for (const uint32_t window : {1u, 2u, 5u, 16u, 200u, 256u}) {
    AttentionShape shape = at(heads_of(4, 2, 32), window < 100 ? 40 : 270, 7, 16);
    shape.window = window;
    add_case(cases, Profile::kFull, "", shape);
    add_case(cases, Profile::kFull, "", at(shape, 0, 7, 16));
  }
  for (uint32_t features = 1; features < 8; ++features) {
    AttentionShape shape = at(heads_of(8, 2, 32), 37, 5, 16);
    shape.cap = (features & 1) != 0 ? 5.0f : 0.0f;
    shape.sinks = (features & 2) != 0;
    shape.slopes = (features & 4) != 0;
    shape.window = features == 7 ? 9 : 0;
    add_case(cases, Profile::kFull, "", shape);
    add_case(cases, Profile::kFull, "", at(shape, 0, 1, 16));
  }
  AttentionShape latent = at(heads_of(4, 1, 40), 21, 3, 16);
  latent.v_dim = 32;
  latent.latent = true;
  add_case(cases, Profile::kFull, "", latent);
}

}  // namespace

void add_attention_cases(std::vector<Case>& cases) {
  add_core_cases(cases);
  add_type_cases(cases);
  add_feature_cases(cases);
}

}  // namespace kvasir::conformance
