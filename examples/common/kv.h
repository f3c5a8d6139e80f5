// SPDX-License-Identifier: MIT
//
// The public C API for C++ programs, as small as it can be: owners that release, and call(), which turns a failing
// status into an exception with the sentence. Nothing of the tool itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/kvasir.h"

namespace kvasir::cli {

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* handle) const { release(handle); }
};
template <class T, void (*release)(T*)>
using Owner = std::unique_ptr<T, Release<T, release>>;

using RuntimePtr = Owner<kv_runtime, kv_runtime_release>;
using ModelPtr = Owner<kv_model, kv_model_release>;
using BuilderPtr = Owner<kv_model_builder, kv_model_builder_release>;
using ContextPtr = Owner<kv_context, kv_context_release>;
using CancelPtr = Owner<kv_cancel, kv_cancel_release>;
using SamplerPtr = Owner<kv_sampler, kv_sampler_release>;
using StreamPtr = Owner<kv_text_stream, kv_text_stream_release>;
using ReportPtr = Owner<kv_backend_report, kv_backend_report_release>;

// A failed call of the library: what() is its sentence.
struct Failure : std::runtime_error {
  Failure(kv_status code, const char* sentence) : std::runtime_error(sentence), status(code) {}
  kv_status status;
};

// A struct of the API, zeroed, with its size set.
template <class T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

// call(kv_prefill, context, ...) adds the error record and throws Failure.
template <class Function, class... Args>
void call(Function function, Args... args) {
  kv_error error = sized<kv_error>();
  const kv_status status = function(args..., &error);
  if (status != KV_OK) throw Failure(status, error.message);
}

// make<ContextPtr>(kv_context_create, model, &options): calls that hand out a new object.
template <class Pointer, class Function, class... Args>
Pointer make(Function function, Args... args) {
  typename Pointer::pointer handle = nullptr;
  call(function, args..., &handle);
  return Pointer(handle);
}

// get<kv_model_info>(kv_model_get_info, model): calls that fill a struct.
template <class T, class Function, class... Args>
T get(Function function, Args... args) {
  T value = sized<T>();
  call(function, args..., &value);
  return value;
}

inline std::vector<int32_t> tokenize(const kv_tokenizer* tokenizer, const std::string& text, uint32_t flags) {
  std::vector<int32_t> tokens(text.size() + 2);  // a token is at least one byte; begin and end come on top
  size_t count = 0;
  kv_error error = sized<kv_error>();
  kv_status status = KV_BUFFER_TOO_SMALL;
  while (status == KV_BUFFER_TOO_SMALL) {
    tokens.resize(std::max(tokens.size(), count));
    status = kv_tokenize(tokenizer, text.data(), text.size(), flags, tokens.data(), tokens.size(), &count, &error);
  }
  if (status != KV_OK) throw Failure(status, error.message);
  tokens.resize(count);
  return tokens;
}

inline std::string detokenize(const kv_tokenizer* tokenizer, const std::vector<int32_t>& tokens, uint32_t flags) {
  size_t length = 0;
  const kv_status asked = kv_detokenize(tokenizer, tokens.data(), tokens.size(), flags, nullptr, 0, &length, nullptr);
  std::string text(asked == KV_BUFFER_TOO_SMALL ? length : 0, '\0');
  call(kv_detokenize, tokenizer, tokens.data(), tokens.size(), flags, text.data(), text.size(), &length);
  return text;
}

// The bytes of one token, special tokens by their spelling.
inline std::string token_text(const kv_tokenizer* tokenizer, int32_t token) {
  size_t length = 0;
  const kv_status asked = kv_token_text(tokenizer, token, KV_TEXT_SPECIAL, nullptr, 0, &length, nullptr);
  std::string text(asked == KV_BUFFER_TOO_SMALL ? length : 0, '\0');
  call(kv_token_text, tokenizer, token, uint32_t{KV_TEXT_SPECIAL}, text.data(), text.size(), &length);
  return text;
}

}  // namespace kvasir::cli
