// SPDX-License-Identifier: MIT
//
// The cache: one block of host memory per page. In a page the layers of its group follow each other; of each layer
// first the K rows, then the V rows:
//   page  [group_layers] { [page_tokens][k_row_bytes], [page_tokens][v_row_bytes] }
// A latent group has no V rows. Pages, sequences and lengths are the host's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device.h"

namespace kvasir::ref {

class Cache {
 public:
  Cache(Device& device, sdk::CacheLayout layout);

  const Device& device() const { return device_; }
  Device& device() { return device_; }
  const sdk::CacheLayout& layout() const { return layout_; }
  const std::vector<uint32_t>& page_counts() const { return page_counts_; }  // [groups]

  // All groups or none; pages below the new count keep their content, new ones read as zeros.
  kv_status resize(const uint32_t* page_counts, kv_error* error);

  // Row `row` of `what` (KVB_ROWS_K, KVB_ROWS_V), as stored; of a latent group V is K.
  std::byte* row(uint32_t layer, uint32_t what, uint32_t page, uint32_t row) const;
  uint64_t row_bytes(uint32_t layer, uint32_t what) const;
  // One head of a row as f32: out [k_dim] or [v_dim].
  void read_head(uint32_t layer, uint32_t what, uint32_t page, uint32_t row, uint32_t head, float* out) const;
  // A row from f32 [kv_heads][k_dim or v_dim], each head rounded and padded by itself.
  void write_row(uint32_t layer, uint32_t what, uint32_t page, uint32_t row, const float* x) const;

  std::byte* page_bytes(uint32_t group, uint32_t page) const { return pages_[group][page].bytes(); }

 private:
  Device& device_;
  sdk::CacheLayout layout_;
  std::vector<uint32_t> page_counts_;
  std::vector<std::vector<sdk::HostBlock>> pages_;  // [groups][page_counts]
};

// Bytes of one page; false when that does not fit 64 bits.
[[nodiscard]] bool page_size(const sdk::CacheLayout& layout, uint32_t group, uint64_t* out);

kv_status cache_memory(kvb_device* device, const kvb_cache_desc* desc, const uint32_t* page_counts, kvb_memory* out,
                       kv_error* error);
kv_status cache_create(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error);
void cache_destroy(kvb_cache* cache);
kv_status cache_resize(kvb_queue* queue, kvb_cache* cache, const uint32_t* page_counts, kv_error* error);
kv_status cache_copy_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t from, uint32_t to,
                          uint32_t first, uint32_t count, kv_error* error);
kv_status cache_poison_page(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t page, kv_error* error);
kv_status cache_read_rows(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, void* data, uint64_t bytes,
                          kv_error* error);
kv_status cache_write_rows(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, const void* data,
                           uint64_t bytes, kv_error* error);
kv_status cache_move_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, const kvb_cache_move* moves,
                          uint32_t count, const kvb_rope* const* rope, kv_error* error);

}  // namespace kvasir::ref
