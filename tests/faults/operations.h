// SPDX-License-Identifier: MIT
//
// The table of operations that are run under failing allocations and files, each over a world of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "faults/world.h"

namespace kvasir::test {

struct Operation {
  std::string name;
  Stage stage;
  std::function<kv_status(World&, kv_error*)> run;
  // Before the failures begin: what the operation needs beside its stage.
  std::function<void(World&)> prepare = [](World&) {};
  // The operation may succeed and yield something else: what failed is a part of its answer.
  bool tells_failures = false;
};

// Files the operations read, made once.
struct Files {
  std::string folder;
  std::string model;        // a GGUF file with a SentencePiece-style vocabulary
  std::string bpe_model;    // and one with byte-level BPE
  std::string first_piece;  // of a model in two files
  std::vector<uint8_t> bytes;

  Files();
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
};

std::vector<Operation> model_operations(const Files& files);
Operation automatic_context();  // on "auto": every backend is looked for
std::vector<Operation> text_operations(const Files& files);
std::vector<Operation> context_operations();

}  // namespace kvasir::test
