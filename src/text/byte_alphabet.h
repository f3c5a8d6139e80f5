// SPDX-License-Identifier: MIT
//
// The alphabet in which byte-level vocabularies spell bytes: each of the 256 bytes has one printable character. Bytes
// that are printable in Latin-1 stand for themselves, the others for U+0100 onwards, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir {

// The UTF-8 character that spells `byte`.
std::string alphabet_character(uint8_t byte);

// The bytes that `piece` spells; false when it holds a character outside the alphabet.
bool read_alphabet(std::string_view piece, std::string* bytes);

}  // namespace kvasir
