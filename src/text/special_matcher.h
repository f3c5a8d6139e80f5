// SPDX-License-Identifier: MIT
//
// SpecialMatcher: finds the spelled-out special tokens in a text, leftmost first, the longest of those that begin at
// one place. It knows texts and ids, not what they mean.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kvasir {

class SpecialMatcher {
 public:
  struct Match {
    size_t begin;
    size_t length;  // 0: none found, and `begin` is the end of the text
    int32_t token;
  };

  // `spelling` must outlive the matcher; empty spellings are ignored. Call finish() once after the last add().
  void add(std::string_view spelling, int32_t token);
  void finish();

  Match find(std::string_view text, size_t from) const;

 private:
  struct Entry {
    std::string_view spelling;
    int32_t token;
  };

  Match longest_at(std::string_view text, size_t begin) const;

  std::vector<Entry> entries_;         // sorted by spelling
  std::array<uint32_t, 257> first_{};  // entries that begin with byte b: [first_[b], first_[b + 1])
};

}  // namespace kvasir
