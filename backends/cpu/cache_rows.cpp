// SPDX-License-Identifier: MIT
//
// Row operations of the cache: copy, poison, read and write. Rows leave and enter in the formats of backend.h, which do
// not depend on how a page is laid out.
#include <algorithm>
#include <cstring>

#include "cache.h"
#include "cache_cells.h"
#include "cache_formats.h"
#include "sdk/errors.h"
#include "sdk/structs.h"
#include "sdk/verify.h"

namespace kvasir::cpu {
namespace {

// Rows [first, first + count) of one head from one page to another of the same layout.
void copy_keys(const SideLayout& side, const std::byte* from, std::byte* to, uint32_t first, uint32_t count,
               uint32_t dims, size_t bytes) {
  for (uint32_t row = first; row < first + count;) {
    const uint32_t block_end = std::min(row / kLanes * kLanes + kLanes, first + count);
    for (uint32_t d = 0; d < dims; d++) {
      const size_t at = side.key_index(row, d, dims) * bytes;
      std::memcpy(to + at, from + at, (block_end - row) * bytes);
    }
    row = block_end;
  }
}

void copy_values(const SideLayout& side, const std::byte* from, std::byte* to, uint32_t first, uint32_t count) {
  const size_t bytes = element_bytes(side.type);
  for (uint32_t d = 0; d < side.padded; d += kLanes) {
    const size_t at = side.value_index(first, d) * bytes;
    std::memcpy(to + at, from + at, size_t{count} * kLanes * bytes);
  }
  for (uint32_t i = 0; i < side.scale_count(); i++) {
    const size_t at = side.scales + side.value_scale_index(first, i) * 2;
    std::memcpy(to + at, from + at, size_t{count} * 2);
  }
}

void copy_head(const GroupLayout& group, const std::byte* from, std::byte* to, uint32_t first, uint32_t count) {
  const SideLayout& keys = group.keys;
  copy_keys(keys, from, to, first, count, keys.padded, element_bytes(keys.type));
  if (keys.scale_count() > 0)
    copy_keys(keys, from + keys.scales, to + keys.scales, first, count, keys.scale_count(), 2);
  copy_values(group.values, from + keys.bytes, to + keys.bytes, first, count);
}

}  // namespace

kv_status Cache::check_rows(uint32_t group, uint32_t page, uint32_t first, uint32_t count, kv_error* error) const {
  KV_REQUIRE(group < groups_.size(), error, KV_INVALID_ARGUMENT, "cache group %u of %zu", group, groups_.size());
  return sdk::verify_page_rows(layout_.groups[group], page_count(group), page, first, count, error);
}

kv_status Cache::copy_rows(uint32_t group, uint32_t from, uint32_t to, uint32_t first, uint32_t count,
                           kv_error* error) {
  KV_TRY(check_rows(group, from, first, count, error));
  KV_TRY(check_rows(group, to, first, count, error));
  if (from == to || count == 0) return KV_OK;
  const GroupLayout& layout = groups_[group];
  if (count == layout.keys.page_tokens) {
    std::memcpy(page(group, to), page(group, from), layout.page_bytes);
    return KV_OK;
  }
  for (uint32_t slot = 0; slot < layout.layers; slot++) {
    for (uint32_t h = 0; h < layout.kv_heads; h++)
      copy_head(layout, layout.head(page(group, from), slot, h), layout.head(page(group, to), slot, h), first, count);
  }
  return KV_OK;
}

// All bits set is a NaN in every float type, scales included.
kv_status Cache::poison_page(uint32_t group, uint32_t index, kv_error* error) {
  KV_TRY(check_rows(group, index, 0, 0, error));
  std::memset(page(group, index), 0xff, groups_[group].page_bytes);
  return KV_OK;
}

template <class Head>
kv_status Cache::each_row_head(const kvb_cache_rows& rows, size_t head_bytes, const Head& visit) const {
  const uint32_t index = layout_.layer_group[rows.layer];
  const GroupLayout& layout = groups_[index];
  const bool keys = rows.what == KVB_ROWS_K;
  size_t offset = 0;
  for (uint32_t row = rows.first; row < rows.first + rows.count; row++) {
    for (uint32_t h = 0; h < layout.kv_heads; h++, offset += head_bytes) {
      std::byte* area = layout.head(page(index, rows.page), layout_.layer_slot[rows.layer], h);
      visit(keys ? area : area + layout.keys.bytes, row, offset);
    }
  }
  return KV_OK;
}

kv_status Cache::judge_rows(const kvb_cache_rows* rows, const void* data, uint64_t bytes, kvb_cache_rows* out,
                            kv_error* error) const {
  KV_TRY(sdk::read_struct(rows, "the cache rows", out, error));
  uint64_t needed = 0;
  KV_TRY(sdk::verify_cache_rows(layout_, page_counts(), *out, &needed, error));
  KV_REQUIRE(bytes == needed, error, KV_INVALID_ARGUMENT, "%u cache rows have %llu bytes, not %llu", out->count,
             static_cast<unsigned long long>(needed), static_cast<unsigned long long>(bytes));
  KV_REQUIRE(bytes == 0 || data != nullptr, error, KV_INVALID_ARGUMENT, "data is NULL");
  return KV_OK;
}

kv_status Cache::read_rows(const kvb_cache_rows* rows, void* data, uint64_t bytes, kv_error* error) const {
  kvb_cache_rows copy{};
  KV_TRY(judge_rows(rows, data, bytes, &copy, error));
  const GroupLayout& layout = groups_[layout_.layer_group[copy.layer]];
  const bool keys = copy.what == KVB_ROWS_K, stored = copy.format == KVB_FORMAT_STORED;
  const SideLayout& side = keys ? layout.keys : layout.values;
  return each_row_head(copy, stored ? stored_head_bytes(side) : side.dim * sizeof(float),
                       [&](std::byte* area, uint32_t row, size_t offset) {
                         EncodedHead head;
                         keys ? load_key(side, area, row, head) : load_value(side, area, row, head);
                         std::byte* out = static_cast<std::byte*>(data) + offset;
                         stored ? to_stored(side, head, out) : to_f32(side, head, out);
                       });
}

kv_status Cache::write_rows(const kvb_cache_rows* rows, const void* data, uint64_t bytes, kv_error* error) {
  kvb_cache_rows copy{};
  KV_TRY(judge_rows(rows, data, bytes, &copy, error));
  KV_REQUIRE(copy.format == KVB_FORMAT_STORED, error, KV_INVALID_ARGUMENT,
             "cache rows are written in stored form only");
  const GroupLayout& layout = groups_[layout_.layer_group[copy.layer]];
  const bool keys = copy.what == KVB_ROWS_K;
  const SideLayout& side = keys ? layout.keys : layout.values;
  return each_row_head(copy, stored_head_bytes(side), [&](std::byte* area, uint32_t row, size_t offset) {
    EncodedHead head;
    from_stored(side, static_cast<const std::byte*>(data) + offset, head);
    keys ? store_key(side, area, row, head) : store_value(side, area, row, head);
  });
}

}  // namespace kvasir::cpu
