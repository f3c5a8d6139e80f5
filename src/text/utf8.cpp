// SPDX-License-Identifier: MIT
//
// UTF-8 as in table 3-7 of the Unicode standard: the second byte's range depends on the first.
#include "text/utf8.h"

#include <algorithm>

namespace kvasir {
namespace {

struct Lead {
  size_t length;          // 0: cannot begin a character
  uint8_t second_lowest;  // allowed range of the second byte
  uint8_t second_highest;
};

Lead classify_lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// How many bytes at the start of `text` agree with the form its first byte announces.
size_t agreeing_bytes(std::string_view text, const Lead& lead) {
  const size_t available = std::min(lead.length, text.size());
  for (size_t i = 1; i < available; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t lowest = i == 1 ? lead.second_lowest : uint8_t{0x80};
    const uint8_t highest = i == 1 ? lead.second_highest : uint8_t{0xBF};
    if (byte < lowest || byte > highest) return i;
  }
  return available;
}

}  // namespace

size_t utf8_character_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = classify_lead(static_cast<uint8_t>(text[0]));
  return agreeing_bytes(text, lead) == lead.length ? lead.length : 0;
}

uint32_t utf8_decode(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code_point = first & (0x7Fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i)
    code_point = code_point << 6 | (static_cast<uint8_t>(character[i]) & 0x3Fu);
  return code_point;
}

void utf8_append(uint32_t code_point, std::string* out) {
  const auto continuation = [&](int shift) { return static_cast<char>(0x80u | (code_point >> shift & 0x3Fu)); };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0u | code_point >> 6));
    out->push_back(continuation(0));
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0u | code_point >> 12));
    out->push_back(continuation(6));
    out->push_back(continuation(0));
  } else {
    out->push_back(static_cast<char>(0xF0u | code_point >> 18));
    out->push_back(continuation(12));
    out->push_back(continuation(6));
    out->push_back(continuation(0));
  }
}

size_t utf8_unfinished_tail(std::string_view text) {
  for (size_t tail = std::min<size_t>(3, text.size()); tail > 0; --tail) {
    const std::string_view end = text.substr(text.size() - tail);
    const Lead lead = classify_lead(static_cast<uint8_t>(end[0]));
    if (lead.length > tail && agreeing_bytes(end, lead) == tail) return tail;
  }
  return 0;
}

std::string quote_bytes(std::string_view text) {
  constexpr size_t kLongest = 40;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string quoted;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      quoted.push_back(c);
    } else {
      quoted += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  if (text.size() > kLongest) quoted += "...";
  return quoted;
}

}  // namespace kvasir
