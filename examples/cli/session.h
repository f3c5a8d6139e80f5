// SPDX-License-Identifier: MIT
//
// Runtime, model and context as the flags ask for them, with progress and Ctrl-C.
#pragma once

#include <string>

#include "common/kv.h"
#include "options.h"

namespace kvasir::cli {

RuntimePtr open_runtime();
ModelPtr open_model(kv_runtime* runtime, const std::string& path, const kv_cancel* cancel);
ContextPtr open_context(kv_model* model, kv_context_options options, const kv_cancel* cancel);
// The model's tokenizer; Failure when its file has none.
const kv_tokenizer* tokenizer_of(const kv_model* model);

struct Session {
  Session(const std::string& path, const DeviceFlags& flags, const kv_cancel* cancel);

  RuntimePtr runtime;
  ModelPtr model;
  ContextPtr context;
};

// "cpu:0 (avx2), exact, keys f16, values f16".
std::string describe_context(const kv_context* context);

}  // namespace kvasir::cli
