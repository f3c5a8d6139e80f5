// SPDX-License-Identifier: MIT
//
// A cache description as a backend keeps it: its own copy, checked, with the sizes that follow from it. Layers of one
// group are numbered within the group too, in the order of layer numbers (`slot`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kvasir/backend.h"
#include "sdk/structs.h"
#include "sdk/types.h"

namespace kvasir::sdk {

struct CacheLayout {
  std::vector<kvb_cache_group> groups;
  std::vector<uint32_t> layer_group;   // [layers]
  std::vector<uint32_t> layer_slot;    // [layers] rank among the layers of the group
  std::vector<uint32_t> group_layers;  // [groups] number of layers

  uint32_t layers() const { return static_cast<uint32_t>(layer_group.size()); }
  const kvb_cache_group& group_of(uint32_t layer) const { return groups[layer_group[layer]]; }

  static bool latent(const kvb_cache_group& group) { return (group.flags & KVB_CACHE_LATENT) != 0; }
  // Bytes of one row (all kv heads) as stored, each head padded to whole blocks; V of a latent cache has none.
  static uint64_t k_row_bytes(const kvb_cache_group& group) {
    return padded_bytes(group.k_type, group.k_dim) * group.kv_heads;
  }
  static uint64_t v_row_bytes(const kvb_cache_group& group) {
    return latent(group) ? 0 : padded_bytes(group.v_type, group.v_dim) * group.kv_heads;
  }
  bool operator==(const CacheLayout& other) const;
};

inline bool CacheLayout::operator==(const CacheLayout& other) const {
  const auto same = [](const kvb_cache_group& a, const kvb_cache_group& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;  // eight words, no padding
  };
  return layer_group == other.layer_group &&
         std::equal(groups.begin(), groups.end(), other.groups.begin(), other.groups.end(), same);
}

// What a backend can store and page; the masks have bit KV_TYPE_* set.
struct CacheLimits {
  uint64_t k_types;
  uint64_t v_types;
  uint32_t page_tokens_min;
  uint32_t page_tokens_max;
};

inline kv_status check_cache_group(const kvb_cache_group& group, uint32_t index, const CacheLimits& limits,
                                   kv_error* error) {
  const bool latent = CacheLayout::latent(group);
  KV_REQUIRE((group.flags & ~uint32_t{KVB_CACHE_LATENT}) == 0, error, KV_UNSUPPORTED,
             "cache group %u has unknown flags 0x%x", index, group.flags);
  KV_REQUIRE(known_type(group.k_type) && (limits.k_types & type_bit(group.k_type)) != 0, error, KV_UNSUPPORTED,
             "cache group %u wants keys of type %s (%u)", index, type_name(group.k_type), group.k_type);
  KV_REQUIRE(latent || (known_type(group.v_type) && (limits.v_types & type_bit(group.v_type)) != 0), error,
             KV_UNSUPPORTED, "cache group %u wants values of type %s (%u)", index, type_name(group.v_type),
             group.v_type);
  KV_REQUIRE(group.kv_heads > 0 && group.k_dim > 0 && group.v_dim > 0, error, KV_INVALID_ARGUMENT,
             "cache group %u has %u heads of %u key and %u value elements", index, group.kv_heads, group.k_dim,
             group.v_dim);
  KV_REQUIRE(!latent || group.v_dim <= group.k_dim, error, KV_INVALID_ARGUMENT,
             "latent cache group %u takes %u value elements out of %u key elements", index, group.v_dim, group.k_dim);
  KV_REQUIRE(group.page_tokens >= limits.page_tokens_min && group.page_tokens <= limits.page_tokens_max, error,
             group.page_tokens == 0 ? KV_INVALID_ARGUMENT : KV_UNSUPPORTED,
             "cache group %u has pages of %u tokens; from %u to %u are possible", index, group.page_tokens,
             limits.page_tokens_min, limits.page_tokens_max);
  // Row widths fit 32 bits, so every later product of a row and a page count can be checked in 64.
  KV_REQUIRE(uint64_t{group.kv_heads} * group.k_dim <= INT32_MAX && uint64_t{group.kv_heads} * group.v_dim <= INT32_MAX,
             error, KV_INVALID_ARGUMENT, "cache group %u has rows of %llu key elements", index,
             static_cast<unsigned long long>(uint64_t{group.kv_heads} * group.k_dim));
  return KV_OK;
}

inline kv_status read_cache(const kvb_cache_desc* desc, const CacheLimits& limits, CacheLayout* out, kv_error* error) {
  kvb_cache_desc copy{};
  KV_TRY(read_struct(desc, "the cache description", &copy, error));
  const StrideView<kvb_cache_group> groups(copy.groups, copy.group_count, copy.group_stride);
  KV_TRY(groups.check("the array of cache groups", error));
  KV_REQUIRE(copy.layers == 0 || copy.layer_group != nullptr, error, KV_INVALID_ARGUMENT,
             "layer_group is NULL, but the cache has %u layers", copy.layers);
  CacheLayout layout;
  for (uint32_t i = 0; i < groups.size(); ++i) {
    layout.groups.push_back(groups[i]);
    KV_TRY(check_cache_group(layout.groups.back(), i, limits, error));
  }
  layout.group_layers.resize(groups.size());
  for (uint32_t layer = 0; layer < copy.layers; ++layer) {
    const uint32_t group = copy.layer_group[layer];
    KV_REQUIRE(group < groups.size(), error, KV_INVALID_ARGUMENT, "cache layer %u is in group %u of %u", layer, group,
               groups.size());
    layout.layer_group.push_back(group);
    layout.layer_slot.push_back(layout.group_layers[group]++);
  }
  *out = std::move(layout);
  return KV_OK;
}

}  // namespace kvasir::sdk
