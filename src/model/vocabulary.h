// SPDX-License-Identifier: MIT
//
// The tokenizer's data out of a GGUF model's metadata. What is done with it is src/text's business.
#pragma once

#include "base/status.h"

namespace kvasir {

class Gguf;
struct Vocabulary;  // text/vocabulary.h

// *present is false, and *out untouched, when the model carries no vocabulary.
Status vocabulary_from_gguf(const Gguf& gguf, Vocabulary* out, bool* present);

}  // namespace kvasir
