// SPDX-License-Identifier: MIT
//
// Model families: each is one function that writes the forward pass with a Builder, in the order the paper states it.
// To add one: a file here, a line in registry.cpp, and its keys in src/model/config.
#pragma once

#include "base/status.h"
#include "model/config.h"
#include "model/weights.h"
#include "program/builder.h"
#include "program/program.h"

namespace kvasir::arch {

void build_llama(Builder& b);   // Llama 1 to 3, Mistral, TinyLlama, SmolLM
void build_qwen2(Builder& b);   // + biases of q, k, v
void build_qwen3(Builder& b);   // + norms of each query and key head
void build_custom(Builder& b);  // from the public builder: every part may be missing

}  // namespace kvasir::arch

namespace kvasir {

// The program of `config`, which must have passed validate, with tensors that have passed check_tensors.
Status build_program(const ModelConfig& config, const WeightSource& weights, Program* out);

}  // namespace kvasir
