// SPDX-License-Identifier: MIT
//
// The cache's geometry and its pages: sizes, growing and shrinking. Row operations are in cache_rows.cpp.
#include "cache.h"

#include <algorithm>
#include <iterator>

#include "sdk/errors.h"
#include "sdk/structs.h"
#include "sdk/types.h"

namespace kvasir::cpu {
namespace {

kv_status check_group(const kvb_cache_group& group, uint32_t index, kv_error* error) {
  KV_REQUIRE(!sdk::CacheLayout::latent(group), error, KV_UNSUPPORTED,
             "cache group %u is a latent cache, which the cpu backend does not have", index);
  KV_REQUIRE(group.k_dim <= kMaxHeadDim && group.v_dim <= kMaxHeadDim, error, KV_UNSUPPORTED,
             "cache group %u has heads of %u key and %u value elements; the cpu backend takes up to %u", index,
             group.k_dim, group.v_dim, kMaxHeadDim);
  return KV_OK;
}

kv_status group_layout(const kvb_cache_group& group, uint32_t index, uint32_t layers, GroupLayout* out,
                       kv_error* error) {
  KV_TRY(check_group(group, index, error));
  GroupLayout layout{};
  layout.keys = side_layout(cache_type(group.k_type), group.page_tokens, group.k_dim, false);
  layout.values = side_layout(cache_type(group.v_type), group.page_tokens, group.v_dim, true);
  layout.kv_heads = group.kv_heads;
  layout.layers = layers;
  layout.head_bytes = layout.keys.bytes + layout.values.bytes;
  uint64_t bytes = 0;
  KV_REQUIRE(sdk::checked_mul(layout.head_bytes * group.kv_heads, uint64_t{layers}, &bytes) &&
                 sdk::checked_add(bytes, uint64_t{kPageSlack}, &layout.page_bytes),
             error, KV_OUT_OF_MEMORY, "a page of cache group %u is too large (%u layers, %u heads, %u tokens)", index,
             layers, group.kv_heads, group.page_tokens);
  *out = layout;
  return KV_OK;
}

}  // namespace

CacheType cache_type(uint32_t type) {
  switch (type) {
    case KV_TYPE_F16: return CacheType::kF16;
    case KV_TYPE_BF16: return CacheType::kBF16;
    case KV_TYPE_Q8_0: return CacheType::kQ8_0;
    default: return CacheType::kF32;
  }
}

kv_status group_layouts(const sdk::CacheLayout& layout, std::vector<GroupLayout>* out, kv_error* error) {
  std::vector<GroupLayout> groups(layout.groups.size());
  for (uint32_t i = 0; i < groups.size(); i++)
    KV_TRY(group_layout(layout.groups[i], i, layout.group_layers[i], &groups[i], error));
  *out = std::move(groups);
  return KV_OK;
}

Cache::Cache(Device& device, sdk::CacheLayout layout, std::vector<GroupLayout> groups)
    : device_(device), layout_(std::move(layout)), groups_(std::move(groups)), pages_(groups_.size()) {}

std::vector<uint32_t> Cache::page_counts() const {
  std::vector<uint32_t> counts(groups_.size());
  for (uint32_t g = 0; g < counts.size(); g++) counts[g] = page_count(g);
  return counts;
}

// New pages of all groups are taken before any group changes; what was taken is given back when one fails.
kv_status Cache::resize(const uint32_t* page_counts, kv_error* error) {
  KV_REQUIRE(page_counts != nullptr || groups_.empty(), error, KV_INVALID_ARGUMENT, "page_counts is NULL");
  std::vector<std::vector<sdk::HostBlock>> fresh(groups_.size());
  for (uint32_t g = 0; g < groups_.size(); g++) {
    for (size_t count = pages_[g].size(); count < page_counts[g]; count++) {
      sdk::HostBlock page;
      KV_TRY(sdk::HostBlock::allocate(device_.memory, groups_[g].page_bytes, "a page of the cache", &page, error));
      fresh[g].push_back(std::move(page));
    }
  }
  for (uint32_t g = 0; g < groups_.size(); g++) pages_[g].reserve(page_counts[g]);  // the last that can fail
  for (uint32_t g = 0; g < groups_.size(); g++) {
    if (page_counts[g] < pages_[g].size()) pages_[g].resize(page_counts[g]);
    std::move(fresh[g].begin(), fresh[g].end(), std::back_inserter(pages_[g]));
  }
  return KV_OK;
}

kv_status cache_memory(const kvb_cache_desc* desc, const uint32_t* page_counts, kvb_memory* out, kv_error* error) {
  sdk::CacheLayout layout;
  std::vector<GroupLayout> groups;
  KV_TRY(sdk::read_cache(desc, kCacheLimits, &layout, error));
  KV_TRY(group_layouts(layout, &groups, error));
  KV_TRY(sdk::check_out_struct(out, "the memory report", error));
  KV_REQUIRE(page_counts != nullptr || groups.empty(), error, KV_INVALID_ARGUMENT, "page_counts is NULL");
  kvb_memory memory{};
  for (uint32_t g = 0; g < groups.size(); g++) {
    uint64_t bytes = 0;
    KV_REQUIRE(sdk::checked_mul(groups[g].page_bytes, uint64_t{page_counts[g]}, &bytes) &&
                   sdk::checked_add(memory.device_bytes, bytes, &memory.device_bytes),
               error, KV_OUT_OF_MEMORY, "%u pages of %llu bytes are too many", page_counts[g],
               static_cast<unsigned long long>(groups[g].page_bytes));
    memory.host_bytes += uint64_t{page_counts[g]} * sizeof(sdk::HostBlock);
  }
  sdk::write_struct(memory, out);
  return KV_OK;
}

kv_status cache_create(Device& device, const kvb_cache_desc* desc, Cache** out, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  sdk::CacheLayout layout;
  std::vector<GroupLayout> groups;
  KV_TRY(sdk::read_cache(desc, kCacheLimits, &layout, error));
  KV_TRY(group_layouts(layout, &groups, error));
  *out = new Cache(device, std::move(layout), std::move(groups));
  return KV_OK;
}

}  // namespace kvasir::cpu
