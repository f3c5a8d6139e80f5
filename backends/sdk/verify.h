// SPDX-License-Identifier: MIT
//
// Everything a backend should refuse before it runs anything: verify_program, verify_step, and here the checks of
// weight descriptions, of the weights given to a program, and of cache rows.
#pragma once

#include <cstdint>

#include "sdk/verify_program.h"
#include "sdk/verify_step.h"

namespace kvasir::sdk {

// Reads and judges a weight description; `types` has bit KV_TYPE_* set for each type the backend takes.
inline kv_status read_weight(const kvb_weight_desc* desc, uint64_t types, kvb_weight_desc* out, kv_error* error) {
  kvb_weight_desc copy{};
  KV_TRY(read_struct(desc, "the weight description", &copy, error));
  KV_REQUIRE((copy.flags & ~uint32_t{KVB_WEIGHT_IMPORT}) == 0, error, KV_UNSUPPORTED,
             "the weight has unknown flags 0x%x", copy.flags);
  KV_REQUIRE(known_type(copy.type) && (types & type_bit(copy.type)) != 0, error, KV_UNSUPPORTED,
             "weights of type %s (%u) are not taken", type_name(copy.type), copy.type);
  KV_REQUIRE(copy.depth > 0 && copy.rows > 0 && copy.width > 0 && copy.width <= kMaxRowWidth, error,
             KV_INVALID_ARGUMENT, "the weight is [%u][%u][%u]", copy.depth, copy.rows, copy.width);
  uint64_t bytes = 0;
  KV_REQUIRE(tensor_bytes(copy.type, copy.depth, copy.rows, copy.width, &bytes), error, KV_INVALID_ARGUMENT,
             "the weight is [%u][%u][%u] in %s, whose blocks are %u wide", copy.depth, copy.rows, copy.width,
             type_name(copy.type), kTypes[copy.type].block);
  KV_REQUIRE(copy.bytes == bytes, error, KV_INVALID_ARGUMENT, "the weight has %llu bytes, its shape needs %llu",
             static_cast<unsigned long long>(copy.bytes), static_cast<unsigned long long>(bytes));
  *out = copy;
  return KV_OK;
}

// Whether the weight given for a value has the type and shape the value says.
inline kv_status verify_weight(const kvb_value& value, uint32_t type, uint32_t depth, uint32_t rows, uint32_t width,
                               kv_error* error) {
  KV_REQUIRE(value.type == type && value.depth == depth && value.rows == rows && value.width == width, error,
             KV_INVALID_ARGUMENT, "weight %llu is %s [%u][%u][%u], the program expects %s [%u][%u][%u]",
             static_cast<unsigned long long>(value.place), type_name(type), depth, rows, width, type_name(value.type),
             value.depth, value.rows, value.width);
  return KV_OK;
}

// Rows [first, first + count) of a page that a cache group has.
inline kv_status verify_page_rows(const kvb_cache_group& group, uint32_t page_count, uint32_t page, uint32_t first,
                                  uint32_t count, kv_error* error) {
  KV_REQUIRE(page < page_count, error, KV_INVALID_ARGUMENT, "page %u of %u", page, page_count);
  KV_REQUIRE(range_fits(first, count, group.page_tokens), error, KV_INVALID_ARGUMENT,
             "rows %u to %llu of a page of %u tokens", first, static_cast<unsigned long long>(uint64_t{first} + count),
             group.page_tokens);
  return KV_OK;
}

// Judges a kvb_cache_rows (as read_struct left it) and says how many bytes the rows have in its format.
inline kv_status verify_cache_rows(const CacheLayout& cache, const std::vector<uint32_t>& page_counts,
                                   const kvb_cache_rows& rows, uint64_t* bytes, kv_error* error) {
  KV_REQUIRE(rows.reserved == 0, error, KV_UNSUPPORTED, "cache rows set a reserved field");
  KV_REQUIRE(rows.layer < cache.layers(), error, KV_INVALID_ARGUMENT, "cache layer %u of %u", rows.layer,
             cache.layers());
  const kvb_cache_group& group = cache.group_of(rows.layer);
  KV_REQUIRE(rows.what == KVB_ROWS_K || rows.what == KVB_ROWS_V, error, KV_INVALID_ARGUMENT,
             "cache rows of %u are neither keys nor values", rows.what);
  KV_REQUIRE(rows.format == KVB_FORMAT_STORED || rows.format == KVB_FORMAT_F32, error, KV_INVALID_ARGUMENT,
             "cache rows in the unknown format %u", rows.format);
  KV_TRY(verify_page_rows(group, page_counts[cache.layer_group[rows.layer]], rows.page, rows.first, rows.count, error));
  const bool keys = rows.what == KVB_ROWS_K;
  const bool latent_values = !keys && CacheLayout::latent(group);
  KV_REQUIRE(!latent_values || rows.format == KVB_FORMAT_F32, error, KV_INVALID_ARGUMENT,
             "a latent cache has no stored values; layer %u", rows.layer);
  const uint64_t stored = keys ? CacheLayout::k_row_bytes(group) : CacheLayout::v_row_bytes(group);
  const uint64_t widened = uint64_t{group.kv_heads} * (keys ? group.k_dim : group.v_dim) * sizeof(float);
  *bytes = rows.count * (rows.format == KVB_FORMAT_STORED ? stored : widened);
  return KV_OK;
}

}  // namespace kvasir::sdk
