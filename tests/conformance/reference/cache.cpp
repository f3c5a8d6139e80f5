// SPDX-License-Identifier: MIT
//
// Rows in and out of the reference's cache.
#include "reference/cache.h"

#include <stdexcept>
#include <string>

#include "reference/quantize.h"

namespace kvasir::conformance {

ReferenceCache::Place ReferenceCache::place(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages,
                                            uint32_t position) const {
  const uint32_t page_tokens = group_of(layer).page_tokens;
  return {layer, what, pages.at(position / page_tokens), position % page_tokens};
}

void ReferenceCache::write(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages, uint32_t position,
                           const double* x) {
  const kvb_cache_group& group = group_of(layer);
  const uint32_t dim = what == KVB_ROWS_K ? group.k_dim : group.v_dim;
  const uint32_t type = what == KVB_ROWS_K ? group.k_type : group.v_type;
  std::vector<double>& row = rows_[place(layer, what, pages, position)];
  row.clear();
  for (uint32_t head = 0; head < group.kv_heads; ++head) {
    const std::vector<float> exact(x + size_t{head} * dim, x + size_t{head + 1} * dim);
    const std::vector<float> rounded = dequantize_head(type, quantize_head(type, exact.data(), dim).data(), dim);
    row.insert(row.end(), rounded.begin(), rounded.end());
  }
}

std::vector<double> ReferenceCache::read(uint32_t layer, uint32_t what, const std::vector<uint32_t>& pages,
                                         uint32_t position) const {
  const kvb_cache_group& group = group_of(layer);
  const bool latent = (group.flags & KVB_CACHE_LATENT) != 0;
  const auto found = rows_.find(place(layer, latent ? uint32_t{KVB_ROWS_K} : what, pages, position));
  if (found == rows_.end()) {
    throw std::logic_error("a test reads position " + std::to_string(position) + ", which it never stored");
  }
  if (!latent || what == KVB_ROWS_K) return found->second;
  std::vector<double> values;
  for (uint32_t head = 0; head < group.kv_heads; ++head) {
    const double* key = found->second.data() + size_t{head} * group.k_dim;
    values.insert(values.end(), key, key + group.v_dim);
  }
  return values;
}

}  // namespace kvasir::conformance
