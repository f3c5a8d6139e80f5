// SPDX-License-Identifier: MIT
//
// Tables are measured first and printed in one go.
#include "text.h"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <limits>

#include "commands.h"

namespace kvasir::cli {
namespace {

// Length of the well-formed UTF-8 character at `at`, 0 if there is none.
size_t character_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; i++) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const size_t used = display_width(cell);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string format(const char* pattern, ...) {
  std::va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    unit++;
  }
  return format(value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
}

uint64_t parse_bytes(const std::string& text) {
  double number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(rest, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const std::string units = "BKMGT";
  const size_t power = unit.empty() ? 0 : units.find(unit[0]);
  const bool known = power != std::string::npos &&
                     (unit.size() <= 1 || (power > 0 && (unit.substr(1) == "B" || unit.substr(1) == "IB")));
  for (size_t i = 0; known && i < power; i++) number *= 1024;
  if (problem != std::errc() || !known || !(number >= 0) || number >= 9e18) {
    throw UsageError("'" + text + "' is not a size; write it like 2GiB, 512M or 1000000");
  }
  return static_cast<uint64_t>(number);
}

std::string printable(const std::string& bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const char c = bytes[at];
    const size_t length = character_length(bytes, at);
    if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (c == '\\' || c == '"') {
      out += std::string("\\") + c;
    } else if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7f))) {
      out += format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out.append(bytes, at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

size_t display_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(!title.empty() && title[0] == '>');
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::print() const {
  std::vector<size_t> widths;
  for (const std::string& title : titles_) widths.push_back(display_width(title));
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); c++) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t c = 0; c < cells.size(); c++) out += (c != 0 ? "  " : "") + padded(cells[c], widths[c], right_[c]);
    out.erase(out.find_last_not_of(' ') + 1);
    std::printf("%s\n", out.c_str());
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
}

}  // namespace kvasir::cli
