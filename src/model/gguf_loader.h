// SPDX-License-Identifier: MIT
//
// GgufLoader: parses the pieces of a model one by one and puts them together. Internal to the GGUF parser.
#pragma once

#include <memory>

#include "model/gguf.h"
#include "model/gguf_reader.h"

namespace kvasir {

// What a piece of a split model says about the whole.
struct GgufSplit {
  uint32_t count = 1;
  uint32_t number = 0;
  uint32_t tensors = 0;  // of all pieces; 0: not said
};

class GgufLoader {
 public:
  // Reads the next piece; the first one decides about metadata and number of pieces.
  Status add(std::shared_ptr<const ByteSource> source);

  const GgufSplit& split() const { return split_; }  // of the first piece

  // Checks the whole and hands it over.
  Status finish(std::shared_ptr<const Gguf>* out);

 private:
  // Parsed, but not yet part of the model.
  struct Piece {
    Gguf gguf;
    GgufSplit split;
    uint64_t alignment = 32;
    uint64_t data_start = 0;
  };

  static Status parse(const ByteSource& source, Piece* piece);
  static Status parse_start(GgufReader* reader, const ByteSource& source, uint32_t* version, uint64_t* tensors,
                            uint64_t* keys);
  static Status parse_entry(GgufReader* reader, Gguf::Entry* entry);
  static Status parse_tensor(GgufReader* reader, TensorInfo* info, uint64_t* offset);
  static Status sort_entries(Gguf* gguf);
  static Status read_own_keys(Piece* piece);
  static Status place_tensors(const ByteSource& source, Piece* piece);

  std::shared_ptr<Gguf> gguf_;
  GgufSplit split_;
};

}  // namespace kvasir
