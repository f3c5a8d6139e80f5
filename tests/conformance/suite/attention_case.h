// SPDX-License-Identifier: MIT
//
// Attention over stored rows: a history that one program stores, then steps of a program that stores and attends, on
// the backend and on the reference.
#pragma once

#include <string>
#include <vector>

#include "suite/op_case.h"

namespace kvasir::conformance {

struct AttentionShape {
  uint32_t heads = 4, kv_heads = 2, k_dim = 64, v_dim = 64;
  uint32_t history = 0;  // positions stored before the step
  uint32_t tokens = 1;   // of the step
  uint32_t page_tokens = 16;
  uint32_t window = 0;
  float cap = 0;
  bool sinks = false, slopes = false, latent = false;
  float sharpness = 1;                                          // deviation of the scores
  uint32_t k_type = KV_TYPE_DEFAULT, v_type = KV_TYPE_DEFAULT;  // default: what the device has
  uint32_t compute_mode = KV_COMPUTE_EXACT;
};

// "heads=4/2,dim=64,..." without what is as usual.
std::string shape_label(const AttentionShape& shape);
void run_attention(Subject& subject, const std::string& name, const AttentionShape& shape);

}  // namespace kvasir::conformance
