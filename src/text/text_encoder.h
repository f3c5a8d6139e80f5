// SPDX-License-Identifier: MIT
//
// TextEncoder: plain text (no special tokens in it) to token ids. Two kinds exist: SpmEncoder and BpeEncoder.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace kvasir {

class TextEncoder {
 public:
  // Positions in a text are 32 bits wide.
  static constexpr size_t kLongestText = static_cast<size_t>(std::numeric_limits<int32_t>::max()) - 1;

  virtual ~TextEncoder() = default;

  // Appends the tokens of `text`, which has at most kLongestText bytes. Thread-safe. `out` is unspecified on failure.
  virtual Status encode(std::string_view text, std::vector<int32_t>* out) const = 0;

 protected:
  using TokenMap = std::unordered_map<std::string_view, int32_t>;  // token by its bytes or by its piece
};

}  // namespace kvasir
