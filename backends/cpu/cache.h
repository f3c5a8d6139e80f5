// SPDX-License-Identifier: MIT
//
// The paged cache: keys and values of all layers. Every page is a block of its own, so that growing copies nothing.
// Which cell holds what is in simd/page_layout.h; here are the pages, their number, and backend.h's row operations.
#pragma once

#include <cstdint>
#include <vector>

#include "device.h"
#include "kvasir/backend.h"
#include "sdk/cache_layout.h"
#include "sdk/host_memory.h"
#include "simd/page_layout.h"

namespace kvasir::cpu {

CacheType cache_type(uint32_t type);

// A page of one group: [layers of the group][kv_heads] x (keys, values).
struct GroupLayout {
  SideLayout keys, values;
  uint32_t kv_heads;
  uint32_t layers;      // of this group
  uint64_t head_bytes;  // keys and values of one head
  uint64_t page_bytes;  // with the slack behind

  std::byte* head(std::byte* page, uint32_t slot, uint32_t kv_head) const {
    return page + (uint64_t{slot} * kv_heads + kv_head) * head_bytes;
  }
};

// Refuses, with a sentence, what these kernels cannot store; else gives one layout per group.
kv_status group_layouts(const sdk::CacheLayout& layout, std::vector<GroupLayout>* out, kv_error* error);

class Cache {
 public:
  Cache(Device& device, sdk::CacheLayout layout, std::vector<GroupLayout> groups);

  Device& device() const { return device_; }
  const sdk::CacheLayout& layout() const { return layout_; }
  const GroupLayout& group(uint32_t index) const { return groups_[index]; }
  uint32_t group_count() const { return static_cast<uint32_t>(groups_.size()); }
  uint32_t page_count(uint32_t group) const { return static_cast<uint32_t>(pages_[group].size()); }
  std::vector<uint32_t> page_counts() const;  // [groups]
  std::byte* page(uint32_t group, uint32_t index) const { return pages_[group][index].bytes(); }

  kv_status resize(const uint32_t* page_counts, kv_error* error);
  kv_status copy_rows(uint32_t group, uint32_t from, uint32_t to, uint32_t first, uint32_t count, kv_error* error);
  kv_status poison_page(uint32_t group, uint32_t page, kv_error* error);
  kv_status read_rows(const kvb_cache_rows* rows, void* data, uint64_t bytes, kv_error* error) const;
  kv_status write_rows(const kvb_cache_rows* rows, const void* data, uint64_t bytes, kv_error* error);
  kv_status move_rows(uint32_t group, const kvb_cache_move* moves, uint32_t count, const kvb_rope* const* rope,
                      kv_error* error);

 private:
  kv_status check_moves(uint32_t group, const kvb_cache_move* moves, uint32_t count, const kvb_rope* const* rope,
                        kv_error* error) const;
  kv_status check_rows(uint32_t group, uint32_t page, uint32_t first, uint32_t count, kv_error* error) const;
  // Reads and checks a description of rows, and that `bytes` is what they need.
  kv_status judge_rows(const kvb_cache_rows* rows, const void* data, uint64_t bytes, kvb_cache_rows* out,
                       kv_error* error) const;
  // visit(area, row, offset) for every head of every row; offset: of the head in the caller's data.
  template <class Head>
  kv_status each_row_head(const kvb_cache_rows& rows, size_t head_bytes, const Head& visit) const;

  Device& device_;
  const sdk::CacheLayout layout_;
  const std::vector<GroupLayout> groups_;
  std::vector<std::vector<sdk::HostBlock>> pages_;  // [groups][pages]
};

kv_status cache_memory(const kvb_cache_desc* desc, const uint32_t* page_counts, kvb_memory* out, kv_error* error);
kv_status cache_create(Device& device, const kvb_cache_desc* desc, Cache** out, kv_error* error);

}  // namespace kvasir::cpu
