// SPDX-License-Identifier: MIT
//
// Everything an application can see of a context: counters, sequences, their tokens, and the bits of every cached row.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "support/kv.h"

namespace kvasir::test {

struct SequenceState {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> rows;  // [layer * 2 + (V ? 1 : 0)]: [tokens][row width]
};

struct ContextState {
  uint64_t free_tokens = 0, tokens_computed = 0, projections = 0, projections_avoided = 0;
  uint64_t pages_used = 0, pages_shared = 0, scratch_bytes = 0, weight_bytes = 0;
  uint32_t sequences = 0;
  std::map<kv_sequence, SequenceState> held;
};

inline std::vector<float> cached_rows(kv_context* context, kv_sequence sequence, uint32_t layer, uint32_t what,
                                      uint64_t count, uint64_t width) {
  Error e;
  std::vector<float> rows(count * width);
  if (kv_cache_read(context, sequence, layer, what, 0, count, rows.data(), rows.size(), &e) != KV_OK) {
    ADD_FAILURE() << "kv_cache_read of sequence " << sequence << ": " << e.message;
  }
  return rows;
}

// Of the sequences with ids below `ids`. `width` is that of a cached row, of keys and of values.
inline ContextState observe(kv_context* context, kv_sequence ids, uint32_t layers, uint64_t width) {
  ContextState state;
  Error e;
  kv_context_info info = sized<kv_context_info>();
  if (kv_context_get_info(context, &info, &e) != KV_OK) ADD_FAILURE() << e.message;
  state.free_tokens = info.free_tokens;
  state.tokens_computed = info.tokens_computed;
  state.projections = info.projections;
  state.projections_avoided = info.projections_avoided;
  state.pages_used = info.pages_used;
  state.pages_shared = info.pages_shared;
  state.scratch_bytes = info.scratch_bytes;
  state.weight_bytes = info.weight_bytes;
  state.sequences = info.sequences;
  for (kv_sequence id = 0; id < ids; id++) {
    uint64_t length = 0;
    if (kv_sequence_length(context, id, &length, nullptr) != KV_OK) continue;
    SequenceState& held = state.held[id];
    held.tokens.resize(length);
    if (kv_sequence_tokens(context, id, 0, length, held.tokens.data(), &e) != KV_OK) ADD_FAILURE() << e.message;
    for (uint32_t layer = 0; layer < layers; layer++) {
      held.rows.push_back(cached_rows(context, id, layer, KV_CACHE_K, length, width));
      held.rows.push_back(cached_rows(context, id, layer, KV_CACHE_V, length, width));
    }
  }
  return state;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// What differs, one line for each; empty when nothing does.
inline std::string difference(const ContextState& before, const ContextState& after) {
  std::string text;
  const auto number = [&](const char* name, uint64_t a, uint64_t b) {
    if (a != b) text += std::string(name) + ": " + std::to_string(a) + " -> " + std::to_string(b) + "\n";
  };
  number("free_tokens", before.free_tokens, after.free_tokens);
  number("tokens_computed", before.tokens_computed, after.tokens_computed);
  number("projections", before.projections, after.projections);
  number("projections_avoided", before.projections_avoided, after.projections_avoided);
  number("pages_used", before.pages_used, after.pages_used);
  number("pages_shared", before.pages_shared, after.pages_shared);
  number("scratch_bytes", before.scratch_bytes, after.scratch_bytes);
  number("weight_bytes", before.weight_bytes, after.weight_bytes);
  number("sequences", before.sequences, after.sequences);
  number("sequences found", before.held.size(), after.held.size());
  for (const auto& [id, old] : before.held) {
    const std::string name = "sequence " + std::to_string(id);
    const auto found = after.held.find(id);
    if (found == after.held.end()) {
      text += name + " is gone\n";
      continue;
    }
    number((name + " length").c_str(), old.tokens.size(), found->second.tokens.size());
    if (old.tokens != found->second.tokens) text += name + ": other tokens\n";
    for (size_t i = 0; i < old.rows.size(); i++) {
      if (same_bits(old.rows[i], found->second.rows[i])) continue;
      text += name + ": other " + (i % 2 == 0 ? "keys" : "values") + " in layer " + std::to_string(i / 2) + "\n";
    }
  }
  return text;
}

}  // namespace kvasir::test
