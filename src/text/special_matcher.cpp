// SPDX-License-Identifier: MIT
//
// The sorted list is walked like a trie: each further byte of the text narrows the range of entries that still agree.
#include "text/special_matcher.h"

#include <algorithm>

namespace kvasir {

void SpecialMatcher::add(std::string_view spelling, int32_t token) {
  if (!spelling.empty()) entries_.push_back({spelling, token});
}

void SpecialMatcher::finish() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.spelling < b.spelling; });
  std::array<uint32_t, 256> counts{};
  for (const Entry& entry : entries_) ++counts[static_cast<uint8_t>(entry.spelling[0])];
  for (size_t byte = 0; byte < 256; ++byte) first_[byte + 1] = first_[byte] + counts[byte];
}

SpecialMatcher::Match SpecialMatcher::longest_at(std::string_view text, size_t begin) const {
  Match best{begin, 0, -1};
  const auto lead = static_cast<uint8_t>(text[begin]);
  auto low = entries_.begin() + first_[lead];
  auto high = entries_.begin() + first_[lead + 1];
  for (size_t depth = 1; low != high; ++depth) {
    // Sorted: the one entry that ends here, if any, is the first of those that agree so far.
    if (low->spelling.size() == depth) best = {begin, depth, (low++)->token};
    if (begin + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[begin + depth]);
    const auto at_depth = [&](const Entry& entry) { return static_cast<uint8_t>(entry.spelling[depth]); };
    low = std::partition_point(low, high, [&](const Entry& entry) { return at_depth(entry) < byte; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return at_depth(entry) == byte; });
  }
  return best;
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size() && !entries_.empty(); ++begin) {
    const auto lead = static_cast<uint8_t>(text[begin]);
    if (first_[lead] == first_[lead + 1]) continue;
    if (const Match match = longest_at(text, begin); match.length > 0) return match;
  }
  return {text.size(), 0, -1};
}

}  // namespace kvasir
