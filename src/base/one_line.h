// SPDX-License-Identifier: MIT
//
// Text of unknown origin (paths, plugins, files) on one line: logs and reports are read line by line.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

namespace kvasir {

// Control characters of ASCII become spaces.
inline void make_one_line(char* first, char* last) {
  std::replace_if(
      first, last, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
}

inline std::string one_line(std::string text) {
  make_one_line(text.data(), text.data() + text.size());
  return text;
}

}  // namespace kvasir
