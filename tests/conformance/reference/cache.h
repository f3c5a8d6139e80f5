// SPDX-License-Identifier: MIT
//
// Keys and values as a cache gives them back: rounded to its types, kept by layer, page and row. A row that nobody wrote
// cannot be read.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "support/backend_harness.h"

namespace kvasir::conformance {

class ReferenceCache {
 public:
  explicit ReferenceCache(testing::CacheSpec spec) : spec_(std::move(spec)) {}

  // `x` [kv_heads * k_dim] or [kv_heads * v_dim] goes to `position` of a sequence with these pages (of the layer's
  // group).
  void write(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages, uint32_t position, const double* x);
  // The row there; a latent cache gives [kv_heads * v_dim] from its keys.
  std::vector<double> read(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages, uint32_t position) const;

  const kvb_cache_group& group_of(uint32_t layer) const { return spec_.groups[group_index(layer)]; }
  uint32_t group_index(uint32_t layer) const { return spec_.layer_group[layer]; }

 private:
  using Place = std::array<uint32_t, 4>;  // layer, what, page, row
  Place place(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages, uint32_t position) const;

  testing::CacheSpec spec_;
  std::map<Place, std::vector<double>> rows_;
};

}  // namespace kvasir::conformance
