// SPDX-License-Identifier: MIT
//
// The few UTF-8 questions the tokenizers ask about bytes that may or may not be UTF-8. No normalisation, no case
// folding, no locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir {

// Bytes in the well-formed character at the start of `text` (1 to 4), or 0 when there is none: empty, stray
// continuation, overlong form, surrogate, above U+10FFFF, or cut short.
size_t utf8_character_length(std::string_view text);

// The code point of one character whose length utf8_character_length gave.
uint32_t utf8_decode(std::string_view character);

void utf8_append(uint32_t code_point, std::string* out);

// Bytes at the end of `text` (0 to 3) that begin a character which later bytes could still complete.
size_t utf8_unfinished_tail(std::string_view text);

// `text` for an error sentence: control and non-ASCII bytes as \xNN, cut after 40 bytes.
std::string quote_bytes(std::string_view text);

}  // namespace kvasir
