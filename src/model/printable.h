// SPDX-License-Identifier: MIT
//
// Names out of files, made fit for an error message: short, one line, ASCII.
#pragma once

#include <string>
#include <string_view>

namespace kvasir {

inline std::string printable(std::string_view name) {
  constexpr size_t kLongest = 80;
  std::string text(name.substr(0, kLongest));
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';  // also catches bytes above 0x7f where char is signed
  }
  if (name.size() > kLongest) text += "...";
  return text;
}

}  // namespace kvasir
