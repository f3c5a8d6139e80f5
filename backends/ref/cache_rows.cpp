// SPDX-License-Identifier: MIT
//
// Operations on cache rows. Steps run inside queue_submit, so nothing can be under way on the queue when these are
// called: they just run.
#include <algorithm>
#include <cstring>

#include "cache.h"
#include "sdk/fpstate.h"
#include "sdk/handle.h"
#include "sdk/rope.h"
#include "sdk/verify.h"

namespace kvasir::ref {

using sdk::CacheLayout;
using sdk::object_of;

namespace {

kv_status check_handles(kvb_queue* queue, kvb_cache* cache, kv_error* error) {
  KV_REQUIRE(queue != nullptr && cache != nullptr, error, KV_INVALID_ARGUMENT, "queue or cache is NULL");
  return KV_OK;
}

kv_status check_group(const Cache& cache, uint32_t group, kv_error* error) {
  KV_REQUIRE(group < cache.layout().groups.size(), error, KV_INVALID_ARGUMENT, "cache group %u of %zu", group,
             cache.layout().groups.size());
  return KV_OK;
}

kv_status check_rows(const Cache& cache, const kvb_cache_rows* rows, const void* data, uint64_t bytes,
                     kvb_cache_rows* out, kv_error* error) {
  KV_TRY(sdk::read_struct(rows, "the cache rows", out, error));
  uint64_t needed = 0;
  KV_TRY(sdk::verify_cache_rows(cache.layout(), cache.page_counts(), *out, &needed, error));
  KV_REQUIRE(bytes == needed, error, KV_INVALID_ARGUMENT, "%llu bytes for cache rows of %llu",
             static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(needed));
  KV_REQUIRE(bytes == 0 || data != nullptr, error, KV_INVALID_ARGUMENT, "data is NULL");
  return KV_OK;
}

void read_rows_f32(const Cache& cache, const kvb_cache_rows& rows, float* out) {
  const kvb_cache_group& group = cache.layout().group_of(rows.layer);
  const uint32_t width = rows.what == KVB_ROWS_K ? group.k_dim : group.v_dim;
  for (uint32_t row = rows.first; row < rows.first + rows.count; ++row) {
    for (uint32_t head = 0; head < group.kv_heads; ++head) {
      cache.read_head(rows.layer, rows.what, rows.page, row, head, out);
      out += width;
    }
  }
}

kv_status check_moves(const Cache& cache, uint32_t group, const kvb_cache_move* moves, uint32_t count,
                      const kvb_rope* const* rope, kv_error* error) {
  KV_TRY(check_group(cache, group, error));
  KV_REQUIRE(count == 0 || moves != nullptr, error, KV_INVALID_ARGUMENT, "moves is NULL");
  const kvb_cache_group& geometry = cache.layout().groups[group];
  const uint32_t pages = cache.page_counts()[group];
  for (uint32_t i = 0; i < count; ++i) {
    const kvb_cache_move& move = moves[i];
    KV_TRY(sdk::verify_page_rows(geometry, pages, move.from_page, move.from_row, move.count, error));
    KV_TRY(sdk::verify_page_rows(geometry, pages, move.to_page, move.to_row, move.count, error));
  }
  for (uint32_t slot = 0; rope != nullptr && slot < cache.layout().group_layers[group]; ++slot) {
    const char* fault = rope[slot] == nullptr ? nullptr : sdk::rope_fault(*rope[slot], geometry.k_dim);
    KV_REQUIRE(fault == nullptr, error, KV_INVALID_ARGUMENT, "rotary parameters of layer %u of the group: %s", slot,
               fault);
  }
  return KV_OK;
}

// All rows of all moves of one layer: read into `stage`, then written from there.
void move_layer(const Cache& cache, uint32_t layer, const kvb_cache_move* moves, uint32_t count, const kvb_rope* rope,
                std::byte* stage, float* row_buffer) {
  const kvb_cache_group& group = cache.layout().group_of(layer);
  for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
    if (what == KVB_ROWS_V && CacheLayout::latent(group)) continue;
    const uint64_t row_bytes = cache.row_bytes(layer, what);
    std::byte* staged = stage;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t bytes = moves[i].count * row_bytes;
      if (bytes > 0) std::memcpy(staged, cache.row(layer, what, moves[i].from_page, moves[i].from_row), bytes);
      staged += bytes;
    }
    staged = stage;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t bytes = moves[i].count * row_bytes;
      if (bytes > 0) std::memcpy(cache.row(layer, what, moves[i].to_page, moves[i].to_row), staged, bytes);
      staged += bytes;
    }
  }
  for (uint32_t i = 0; rope != nullptr && i < count; ++i) {
    for (uint32_t row = 0; moves[i].delta != 0 && row < moves[i].count; ++row) {
      for (uint32_t head = 0; head < group.kv_heads; ++head) {
        float* keys = row_buffer + size_t{head} * group.k_dim;
        cache.read_head(layer, KVB_ROWS_K, moves[i].to_page, moves[i].to_row + row, head, keys);
        sdk::turn_head(*rope, moves[i].delta, keys);
      }
      cache.write_row(layer, KVB_ROWS_K, moves[i].to_page, moves[i].to_row + row, row_buffer);
    }
  }
}

kv_status move_rows(Cache& cache, uint32_t group, const kvb_cache_move* moves, uint32_t count,
                    const kvb_rope* const* rope, kv_error* error) {
  KV_TRY(check_moves(cache, group, moves, count, rope, error));
  const CacheLayout& layout = cache.layout();
  const kvb_cache_group& geometry = layout.groups[group];
  uint64_t rows = 0;
  for (uint32_t i = 0; i < count; ++i) rows += moves[i].count;
  const uint64_t widest = std::max(CacheLayout::k_row_bytes(geometry), CacheLayout::v_row_bytes(geometry));
  uint64_t stage_bytes = 0;
  KV_REQUIRE(sdk::checked_mul(rows, widest, &stage_bytes), error, KV_OUT_OF_MEMORY,
             "%llu rows are too many to move at once", static_cast<unsigned long long>(rows));
  sdk::HostBlock stage;
  sdk::HostBlock row_buffer;
  KV_TRY(sdk::HostBlock::allocate(cache.device().memory, stage_bytes, "rows to move", &stage, error));
  KV_TRY(sdk::HostBlock::allocate(cache.device().memory, uint64_t{geometry.kv_heads} * geometry.k_dim * sizeof(float),
                                  "a row to rotate", &row_buffer, error));
  for (uint32_t layer = 0; layer < layout.layers(); ++layer) {
    if (layout.layer_group[layer] != group) continue;
    const kvb_rope* turn = rope == nullptr ? nullptr : rope[layout.layer_slot[layer]];
    move_layer(cache, layer, moves, count, turn, stage.bytes(), row_buffer.as<float>());
  }
  return KV_OK;
}

}  // namespace

kv_status cache_copy_rows(kvb_queue* queue, kvb_cache* handle, uint32_t group, uint32_t from, uint32_t to,
                          uint32_t first, uint32_t count, kv_error* error) {
  KV_TRY(check_handles(queue, handle, error));
  const Cache& cache = *object_of<Cache>(handle);
  KV_TRY(check_group(cache, group, error));
  const kvb_cache_group& geometry = cache.layout().groups[group];
  KV_TRY(sdk::verify_page_rows(geometry, cache.page_counts()[group], from, first, count, error));
  KV_TRY(sdk::verify_page_rows(geometry, cache.page_counts()[group], to, first, count, error));
  if (from == to || count == 0) return KV_OK;
  for (uint32_t layer = 0; layer < cache.layout().layers(); ++layer) {
    if (cache.layout().layer_group[layer] != group) continue;
    for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
      if (what == KVB_ROWS_V && CacheLayout::latent(geometry)) continue;
      std::memcpy(cache.row(layer, what, to, first), cache.row(layer, what, from, first),
                  count * cache.row_bytes(layer, what));
    }
  }
  return KV_OK;
}

// 0xff in every byte is NaN in f32, f16 and bf16, and gives quantised blocks a NaN scale.
kv_status cache_poison_page(kvb_queue* queue, kvb_cache* handle, uint32_t group, uint32_t page, kv_error* error) {
  KV_TRY(check_handles(queue, handle, error));
  const Cache& cache = *object_of<Cache>(handle);
  KV_TRY(check_group(cache, group, error));
  KV_TRY(sdk::verify_page_rows(cache.layout().groups[group], cache.page_counts()[group], page, 0, 0, error));
  uint64_t bytes = 0;
  if (page_size(cache.layout(), group, &bytes) && bytes > 0) std::memset(cache.page_bytes(group, page), 0xff, bytes);
  return KV_OK;
}

kv_status cache_read_rows(kvb_queue* queue, kvb_cache* handle, const kvb_cache_rows* rows, void* data, uint64_t bytes,
                          kv_error* error) {
  KV_TRY(check_handles(queue, handle, error));
  const Cache& cache = *object_of<Cache>(handle);
  kvb_cache_rows copy{};
  KV_TRY(check_rows(cache, rows, data, bytes, &copy, error));
  if (bytes == 0) return KV_OK;
  if (copy.format == KVB_FORMAT_STORED) {
    std::memcpy(data, cache.row(copy.layer, copy.what, copy.page, copy.first), bytes);
  } else {
    const sdk::FloatingPointScope scope;
    read_rows_f32(cache, copy, static_cast<float*>(data));
  }
  return KV_OK;
}

kv_status cache_write_rows(kvb_queue* queue, kvb_cache* handle, const kvb_cache_rows* rows, const void* data,
                           uint64_t bytes, kv_error* error) {
  KV_TRY(check_handles(queue, handle, error));
  const Cache& cache = *object_of<Cache>(handle);
  kvb_cache_rows copy{};
  KV_TRY(check_rows(cache, rows, data, bytes, &copy, error));
  KV_REQUIRE(copy.format == KVB_FORMAT_STORED, error, KV_INVALID_ARGUMENT,
             "rows are written in the stored format only");
  if (bytes > 0) std::memcpy(cache.row(copy.layer, copy.what, copy.page, copy.first), data, bytes);
  return KV_OK;
}

kv_status cache_move_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, const kvb_cache_move* moves,
                          uint32_t count, const kvb_rope* const* rope, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_TRY(check_handles(queue, cache, error));
    const sdk::FloatingPointScope scope;
    return move_rows(*object_of<Cache>(cache), group, moves, count, rope, error);
  });
}

}  // namespace kvasir::ref
