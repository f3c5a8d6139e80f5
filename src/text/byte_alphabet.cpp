// SPDX-License-Identifier: MIT
//
// Both directions come from one table, built at compile time.
#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace kvasir {
namespace {

constexpr size_t kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable in Latin-1

struct Tables {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr bool prints_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Tables make_tables() {
  Tables tables;
  for (auto& entry : tables.byte) entry = -1;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned character = prints_itself(byte) ? byte : next++;
    tables.character[byte] = static_cast<uint16_t>(character);
    tables.byte[character] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::string alphabet_character(uint8_t byte) {
  std::string character;
  utf8_append(kTables.character[byte], &character);
  return character;
}

bool read_alphabet(std::string_view piece, std::string* bytes) {
  std::string read;
  while (!piece.empty()) {
    const size_t length = utf8_character_length(piece);
    if (length == 0) return false;
    const uint32_t character = utf8_decode(piece.substr(0, length));
    if (character >= kAlphabetEnd || kTables.byte[character] < 0) return false;
    read.push_back(static_cast<char>(kTables.byte[character]));
    piece.remove_prefix(length);
  }
  *bytes = std::move(read);
  return true;
}

}  // namespace kvasir
