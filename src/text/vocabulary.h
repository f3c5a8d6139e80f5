// SPDX-License-Identifier: MIT
//
// Vocabulary: what a model file says about its tokenizer, as plain data with the names of the GGUF keys
// (`tokenizer.ggml.<name>`). src/model fills it; Tokenizer::create checks it. Nothing here encodes or decodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kvasir {

// Values of Vocabulary::types, as in GGUF files.
enum TokenType : int32_t {
  kTokenUndefined = 0,  // read as normal
  kTokenNormal = 1,
  kTokenUnknown = 2,      // stands for what the vocabulary cannot express
  kTokenControl = 3,      // structure, not text: begin, end, roles of a chat
  kTokenUserDefined = 4,  // text that always becomes this one token
  kTokenUnused = 5,       // padding of the table; text never becomes it
  kTokenByte = 6,         // one byte, spelled "<0xNN>"
};

struct Vocabulary {
  std::string model;                // "llama" (SentencePiece-style) or "gpt2" (byte-level BPE)
  std::string pre;                  // name of the pre-tokenizer; "gpt2" only
  std::vector<std::string> pieces;  // [vocab], as the file spells them
  std::vector<float> scores;        // [vocab]; "llama" only: the higher, the earlier a merge
  std::vector<int32_t> types;       // [vocab], or empty: all normal
  std::vector<std::string> merges;  // "left right" in order of rank; "gpt2" only; emptied by Tokenizer::create

  // Special tokens; -1 where there is none (GGUF files also write 4294967295 for that).
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t eot = -1;  // end of a turn
  int32_t eom = -1;  // end of a message that expects a tool's answer
  int32_t unk = -1;
  int32_t sep = -1;
  int32_t pad = -1;

  bool add_bos = false;           // encode(add_special) begins with bos
  bool add_eos = false;           // encode(add_special) ends with eos
  bool add_space_prefix = false;  // "llama" only: text starts as if a space stood before it

  // The type of a token, with "undefined" read as normal.
  int32_t type(size_t token) const {
    return types.empty() || types[token] == kTokenUndefined ? int32_t{kTokenNormal} : types[token];
  }

  // What files leave unsaid. Call after `model` and `pre` are set and before the other keys are read.
  void set_defaults();
};

// The byte that the piece "<0xNN>" of a byte token names, or -1.
int parse_byte_piece(std::string_view piece);

// Every check that needs no table: sizes, ids, types, scores, lengths, duplicates.
Status check_vocabulary(const Vocabulary& vocabulary);

}  // namespace kvasir
