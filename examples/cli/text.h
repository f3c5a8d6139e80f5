// SPDX-License-Identifier: MIT
//
// Text for people: aligned tables, byte counts, numbers, and bytes made printable. Nothing here knows Kvasir.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::cli {

// printf into a string.
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string
format(const char* pattern, ...);

// "1.4 MiB"; whole bytes below 1 KiB.
std::string bytes_text(uint64_t bytes);
// "2GiB", "512M", "1000000": with K, M, G, T (powers of 1024). UsageError when it is not a size.
uint64_t parse_bytes(const std::string& text);

// Control characters, quotes and bytes that are no UTF-8 become escapes: "\n", "\x9f".
std::string printable(const std::string& bytes);
// Columns a terminal uses for UTF-8 text, combining marks and wide characters not considered.
size_t display_width(const std::string& text);

class Table {
 public:
  // A column whose title begins with '>' is aligned to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  void print() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kvasir::cli
