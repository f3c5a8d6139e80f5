// SPDX-License-Identifier: MIT
//
// The cache as memory: creation, size, pages, where a row lies. Operations on rows are in cache_rows.cpp.
#include "cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dequantize.h"
#include "quantize.h"
#include "sdk/handle.h"

namespace kvasir::ref {

using sdk::CacheLayout;
using sdk::object_of;

bool page_size(const CacheLayout& layout, uint32_t group, uint64_t* out) {
  const kvb_cache_group& geometry = layout.groups[group];
  const uint64_t position = CacheLayout::k_row_bytes(geometry) + CacheLayout::v_row_bytes(geometry);
  uint64_t layer = 0;
  return sdk::checked_mul(position, uint64_t{geometry.page_tokens}, &layer) &&
         sdk::checked_mul(layer, uint64_t{layout.group_layers[group]}, out);
}

Cache::Cache(Device& device, CacheLayout layout)
    : device_(device), layout_(std::move(layout)), page_counts_(layout_.groups.size()), pages_(layout_.groups.size()) {}

kv_status Cache::resize(const uint32_t* page_counts, kv_error* error) {
  // Everything that can fail happens to `next`, which holds only the new pages; the rest is swaps and releases.
  std::vector<std::vector<sdk::HostBlock>> next(pages_.size());
  for (uint32_t group = 0; group < pages_.size(); ++group) {
    uint64_t bytes = 0;
    KV_REQUIRE(page_size(layout_, group, &bytes), error, KV_OUT_OF_MEMORY, "a page of cache group %u is too large",
               group);
    next[group].resize(page_counts[group]);
    for (uint32_t page = page_counts_[group]; page < page_counts[group]; ++page) {
      KV_TRY(sdk::HostBlock::allocate(device_.memory, bytes, "a cache page", &next[group][page], error));
      if (bytes > 0) std::memset(next[group][page].bytes(), 0, bytes);
    }
  }
  for (uint32_t group = 0; group < pages_.size(); ++group) {
    const uint32_t kept = std::min(page_counts_[group], page_counts[group]);
    for (uint32_t page = 0; page < kept; ++page) next[group][page].swap(pages_[group][page]);
    page_counts_[group] = page_counts[group];
  }
  pages_.swap(next);
  return KV_OK;
}

uint64_t Cache::row_bytes(uint32_t layer, uint32_t what) const {
  const kvb_cache_group& group = layout_.group_of(layer);
  return what == KVB_ROWS_K || CacheLayout::latent(group) ? CacheLayout::k_row_bytes(group)
                                                          : CacheLayout::v_row_bytes(group);
}

std::byte* Cache::row(uint32_t layer, uint32_t what, uint32_t page, uint32_t row) const {
  const kvb_cache_group& group = layout_.group_of(layer);
  const uint64_t k_bytes = CacheLayout::k_row_bytes(group);
  const uint64_t v_bytes = CacheLayout::v_row_bytes(group);
  std::byte* start = page_bytes(layout_.layer_group[layer], page) +
                     layout_.layer_slot[layer] * group.page_tokens * (k_bytes + v_bytes);
  if (what == KVB_ROWS_K || CacheLayout::latent(group)) return start + row * k_bytes;
  return start + group.page_tokens * k_bytes + row * v_bytes;
}

void Cache::read_head(uint32_t layer, uint32_t what, uint32_t page, uint32_t index, uint32_t head, float* out) const {
  const kvb_cache_group& group = layout_.group_of(layer);
  const uint32_t type = what == KVB_ROWS_K || CacheLayout::latent(group) ? group.k_type : group.v_type;
  const uint32_t width = what == KVB_ROWS_K ? group.k_dim : group.v_dim;
  const uint64_t head_bytes = row_bytes(layer, what) / group.kv_heads;
  dequantize(type, row(layer, what, page, index) + head * head_bytes, width, out);
}

void Cache::write_row(uint32_t layer, uint32_t what, uint32_t page, uint32_t index, const float* x) const {
  const kvb_cache_group& group = layout_.group_of(layer);
  const uint32_t type = what == KVB_ROWS_K ? group.k_type : group.v_type;
  const uint32_t width = what == KVB_ROWS_K ? group.k_dim : group.v_dim;
  const uint64_t head_bytes = row_bytes(layer, what) / group.kv_heads;
  std::byte* target = row(layer, what, page, index);
  for (uint32_t head = 0; head < group.kv_heads; ++head) {
    quantize(type, x + size_t{head} * width, width, target + head * head_bytes);
  }
}

kv_status cache_memory(kvb_device* device, const kvb_cache_desc* desc, const uint32_t* page_counts, kvb_memory* out,
                       kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr, error, KV_INVALID_ARGUMENT, "device is NULL");
    KV_TRY(sdk::check_out_struct(out, "out", error));
    CacheLayout layout;
    KV_TRY(sdk::read_cache(desc, kCacheLimits, &layout, error));
    KV_REQUIRE(layout.groups.empty() || page_counts != nullptr, error, KV_INVALID_ARGUMENT, "page_counts is NULL");
    kvb_memory memory{sizeof(kvb_memory), 0, 0, 0};
    for (uint32_t group = 0; group < layout.groups.size(); ++group) {
      uint64_t bytes = 0;
      KV_REQUIRE(page_size(layout, group, &bytes) && sdk::checked_mul(bytes, uint64_t{page_counts[group]}, &bytes) &&
                     sdk::checked_add(memory.device_bytes, bytes, &memory.device_bytes),
                 error, KV_OUT_OF_MEMORY, "%u pages of cache group %u are too many bytes to count", page_counts[group],
                 group);
      memory.host_bytes += page_counts[group] * sizeof(sdk::HostBlock);
    }
    sdk::write_struct(memory, out);
    return kv_status{KV_OK};
  });
}

kv_status cache_create(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "device or out is NULL");
    CacheLayout layout;
    KV_TRY(sdk::read_cache(desc, kCacheLimits, &layout, error));
    *out = sdk::handle_of<kvb_cache>(new Cache(*object_of<Device>(device), std::move(layout)));
    return kv_status{KV_OK};
  });
}

void cache_destroy(kvb_cache* cache) { delete object_of<Cache>(cache); }

kv_status cache_resize(kvb_queue* queue, kvb_cache* cache, const uint32_t* page_counts, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(queue != nullptr && cache != nullptr, error, KV_INVALID_ARGUMENT, "queue or cache is NULL");
    KV_REQUIRE(page_counts != nullptr || object_of<Cache>(cache)->layout().groups.empty(), error, KV_INVALID_ARGUMENT,
               "page_counts is NULL");
    return object_of<Cache>(cache)->resize(page_counts, error);
  });
}

}  // namespace kvasir::ref
