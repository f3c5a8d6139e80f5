// SPDX-License-Identifier: MIT
//
// One step against the program and the cache it is to run on: after verify_step has said yes, no index that the step
// gives can leave a table, a cache page or a buffer. Pointers are trusted to have the lengths the counts say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sdk/cache_layout.h"
#include "sdk/walk.h"

namespace kvasir::sdk {

class StepVerifier {
 public:
  // `page_counts` [groups]: pages the cache has now.
  StepVerifier(const Program& program, const CacheLayout& cache, const std::vector<uint32_t>& page_counts,
               const kvb_step& step, kv_error* error)
      : program_(program), cache_(cache), page_counts_(page_counts), step_(step), error_(error) {}

  kv_status run(const float* out, uint64_t out_floats) const {
    KV_TRY(counts());
    KV_TRY(pointers());
    KV_TRY(sequences());
    for (const kvb_op& op : program_.ops) {
      if (op.code == KVB_OP_EMBED) KV_TRY(tokens(op));
    }
    return outputs(out, out_floats);
  }

 private:
  kv_status counts() const {
    const kvb_program_desc& desc = program_.desc;
    KV_REQUIRE(step_.token_count > 0 && step_.token_count <= desc.max_tokens, error_, KV_INVALID_ARGUMENT,
               "the step has %u tokens, the program takes 1 to %u", step_.token_count, desc.max_tokens);
    KV_REQUIRE(step_.sequence_count > 0 && step_.sequence_count <= desc.max_sequences, error_, KV_INVALID_ARGUMENT,
               "the step has %u sequences, the program takes 1 to %u", step_.sequence_count, desc.max_sequences);
    KV_REQUIRE(step_.output_count <= desc.max_outputs, error_, KV_INVALID_ARGUMENT,
               "the step wants %u output rows, the program gives at most %u", step_.output_count, desc.max_outputs);
    KV_REQUIRE(step_.group_count == cache_.groups.size(), error_, KV_INVALID_ARGUMENT,
               "the step has page tables for %u cache groups of %zu", step_.group_count, cache_.groups.size());
    return KV_OK;
  }

  kv_status pointers() const {
    KV_REQUIRE(step_.tokens != nullptr && step_.positions != nullptr && step_.sequence_of != nullptr &&
                   step_.lengths != nullptr,
               error_, KV_INVALID_ARGUMENT, "tokens, positions, sequence_of or lengths of the step is NULL");
    KV_REQUIRE(step_.group_count == 0 || step_.tables != nullptr, error_, KV_INVALID_ARGUMENT,
               "the step has no page tables for %u cache groups", step_.group_count);
    KV_REQUIRE(step_.output_count == 0 || step_.output_rows != nullptr, error_, KV_INVALID_ARGUMENT,
               "output_rows of the step is NULL, but %u are wanted", step_.output_count);
    KV_REQUIRE(
        step_.reserved_components == nullptr && step_.reserved_parents == nullptr && step_.reserved_hidden == nullptr,
        error_, KV_UNSUPPORTED, "the step uses a reserved field");
    return KV_OK;
  }

  // Runs of adjacent tokens, one per sequence, with consecutive positions that end at the sequence's length.
  kv_status sequences() const {
    std::vector<bool> seen(step_.sequence_count, false);
    for (uint32_t first = 0, end = 0; first < step_.token_count; first = end) {
      const uint32_t sequence = step_.sequence_of[first];
      KV_REQUIRE(sequence < step_.sequence_count, error_, KV_INVALID_ARGUMENT, "token %u is of sequence %u of %u",
                 first, sequence, step_.sequence_count);
      KV_REQUIRE(!seen[sequence], error_, KV_INVALID_ARGUMENT, "the tokens of sequence %u are not adjacent (token %u)",
                 sequence, first);
      seen[sequence] = true;
      const uint32_t length = step_.lengths[sequence];
      KV_REQUIRE(length <= program_.desc.max_length, error_, KV_INVALID_ARGUMENT,
                 "sequence %u has length %u, the program takes at most %u", sequence, length, program_.desc.max_length);
      for (end = first; end < step_.token_count && step_.sequence_of[end] == sequence; ++end) {
        const uint64_t wanted = uint64_t{step_.positions[first]} + (end - first);
        KV_REQUIRE(step_.positions[end] == wanted, error_, KV_INVALID_ARGUMENT,
                   "token %u of sequence %u is at position %u instead of %llu", end, sequence, step_.positions[end],
                   static_cast<unsigned long long>(wanted));
      }
      KV_REQUIRE(uint64_t{step_.positions[end - 1]} + 1 == length, error_, KV_INVALID_ARGUMENT,
                 "the tokens of sequence %u end at position %u, its length is %u", sequence, step_.positions[end - 1],
                 length);
      for (uint32_t group = 0; group < step_.group_count; ++group) {
        KV_TRY(pages(group, sequence, step_.positions[first], length));
      }
    }
    return KV_OK;
  }

  // Every page that a token at `position` or later can reach must exist.
  kv_status pages(uint32_t group, uint32_t sequence, uint32_t position, uint32_t length) const {
    const kvb_page_table& table = step_.tables[group];
    const kvb_cache_group& geometry = cache_.groups[group];
    KV_REQUIRE(table.reserved == 0, error_, KV_UNSUPPORTED, "page table %u sets a reserved field", group);
    KV_REQUIRE(table.pages != nullptr, error_, KV_INVALID_ARGUMENT, "page table %u is NULL", group);
    KV_REQUIRE(uint64_t{table.pages_per_sequence} * geometry.page_tokens >= length, error_, KV_INVALID_ARGUMENT,
               "page table %u has %u pages of %u tokens for sequence %u of length %u", group, table.pages_per_sequence,
               geometry.page_tokens, sequence, length);
    const uint32_t lowest = geometry.window == 0 || position < geometry.window ? 0 : position - geometry.window + 1;
    const uint32_t* row = table.pages + size_t{sequence} * table.pages_per_sequence;
    for (uint32_t i = lowest / geometry.page_tokens; i <= (length - 1) / geometry.page_tokens; ++i) {
      KV_REQUIRE(row[i] < page_counts_[group], error_, KV_INVALID_ARGUMENT,
                 "page table %u gives page %u to sequence %u at position %llu, the cache has %u", group, row[i],
                 sequence, static_cast<unsigned long long>(uint64_t{i} * geometry.page_tokens), page_counts_[group]);
    }
    return KV_OK;
  }

  kv_status tokens(const kvb_op& embed) const {
    const kvb_value* table = program_.in(embed, 0);
    const kvb_value* positions = program_.in(embed, 1);
    for (uint32_t t = 0; t < step_.token_count; ++t) {
      const int32_t token = step_.tokens[t];
      if (token < 0) {
        KV_REQUIRE(step_.embeddings != nullptr && static_cast<uint32_t>(~token) < step_.embedding_count, error_,
                   KV_INVALID_ARGUMENT, "token %u refers to embedding row %d of %u", t, ~token,
                   step_.embeddings == nullptr ? 0 : step_.embedding_count);
      } else {
        KV_REQUIRE(table != nullptr, error_, KV_INVALID_ARGUMENT, "token %u has id %d, but the program takes rows only",
                   t, token);
        KV_REQUIRE(static_cast<uint32_t>(token) < table->rows, error_, KV_INVALID_ARGUMENT,
                   "token %u has id %d, the vocabulary has %u", t, token, table->rows);
      }
      KV_REQUIRE(positions == nullptr || step_.positions[t] < positions->rows, error_, KV_INVALID_ARGUMENT,
                 "token %u is at position %u, the position table has %u", t, step_.positions[t], positions->rows);
    }
    return KV_OK;
  }

  kv_status outputs(const float* out, uint64_t out_floats) const {
    for (uint32_t o = 0; o < step_.output_count; ++o) {
      KV_REQUIRE(step_.output_rows[o] < step_.token_count, error_, KV_INVALID_ARGUMENT, "output %u is row %u of %u", o,
                 step_.output_rows[o], step_.token_count);
      KV_REQUIRE(o == 0 || step_.output_rows[o] > step_.output_rows[o - 1], error_, KV_INVALID_ARGUMENT,
                 "output %u is row %u after row %u; they must rise", o, step_.output_rows[o], step_.output_rows[o - 1]);
    }
    const uint64_t needed = program_.output_floats(step_.output_count);
    KV_REQUIRE(needed == 0 || out != nullptr, error_, KV_INVALID_ARGUMENT, "out is NULL, but %u rows are wanted",
               step_.output_count);
    KV_REQUIRE(out_floats >= needed, error_, KV_BUFFER_TOO_SMALL, "out holds %llu floats, the step gives %llu",
               static_cast<unsigned long long>(out_floats), static_cast<unsigned long long>(needed));
    return KV_OK;
  }

  const Program& program_;
  const CacheLayout& cache_;
  const std::vector<uint32_t>& page_counts_;
  const kvb_step& step_;
  kv_error* error_;
};

// `step` as read_struct left it.
inline kv_status verify_step(const Program& program, const CacheLayout& cache, const std::vector<uint32_t>& page_counts,
                             const kvb_step& step, const float* out, uint64_t out_floats, kv_error* error) {
  return StepVerifier(program, cache, page_counts, step, error).run(out, out_floats);
}

}  // namespace kvasir::sdk
