// SPDX-License-Identifier: MIT
//
// The public C API with owners and exceptions-free helpers, for tests: OK(call) asserts success and prints the sentence.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kvasir/kvasir.h"

namespace kvasir::test {

// An error record ready for use; `&e` goes into calls.
struct Error : kv_error {
  Error() : kv_error{} { struct_size = sizeof(kv_error); }
};

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

template <class T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

// Asserts that a call returns KV_OK. `e` must be the Error handed to it.
#define OK(call)                                                                     \
  do {                                                                               \
    const kv_status ok_status_ = (call);                                             \
    ASSERT_EQ(ok_status_, KV_OK) << kv_status_name(ok_status_) << ": " << e.message; \
  } while (false)

// Asserts a failure: its code, and a part of its sentence.
#define FAILS(expected, text, call)                                                                       \
  do {                                                                                                    \
    const kv_status fails_status_ = (call);                                                               \
    EXPECT_EQ(fails_status_, expected) << kv_status_name(fails_status_) << ": " << e.message;             \
    EXPECT_NE(std::string(e.message).find(text), std::string::npos) << "the sentence was: " << e.message; \
  } while (false)

// A runtime that finds the plugins of the build tree.
inline RuntimePtr make_runtime(const kv_runtime_options* options = nullptr) {
  kv_runtime_options own = options != nullptr ? *options : sized<kv_runtime_options>();
  own.flags |= KV_RUNTIME_ALLOW_UNTRUSTED;  // build trees may be group-writable
  own.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
  kv_runtime* runtime = nullptr;
  Error e;
  if (kv_runtime_create(&own, &runtime, &e) != KV_OK) ADD_FAILURE() << e.message;
  return RuntimePtr(runtime);
}

// The backends every test runs on.
inline std::vector<std::string> backends() { return {"ref", "cpu"}; }

inline std::string demo_model() {
  const char* folder = std::getenv("KVASIR_TEST_DATA");
  return std::string(folder != nullptr ? folder : "examples/demo_model") + "/demo.gguf";
}

// A file of the workshop beside the project; empty when it is not there.
inline std::string shared_file(const std::string& path) {
  const char* folder = std::getenv("KVASIR_SHARED");
  const std::string full = std::string(folder != nullptr ? folder : "../shared") + "/" + path;
  return std::ifstream(full).good() ? full : "";
}

inline ModelPtr load_model(kv_runtime* runtime, const std::string& path) {
  Error e;
  kv_model* model = nullptr;
  if (kv_model_load_file(runtime, path.c_str(), nullptr, &model, &e) != KV_OK) ADD_FAILURE() << e.message;
  return ModelPtr(model);
}

inline ContextPtr make_context(kv_model* model, const kv_context_options& options) {
  Error e;
  kv_context* context = nullptr;
  if (kv_context_create(model, &options, &context, &e) != KV_OK) ADD_FAILURE() << e.message;
  return ContextPtr(context);
}

// Logits after appending the tokens; empty (and a failure) when that did not work.
inline std::vector<float> prefill(kv_context* context, kv_sequence sequence, const std::vector<int32_t>& tokens) {
  Error e;
  kv_step_result result = sized<kv_step_result>();
  if (kv_prefill(context, sequence, tokens.data(), tokens.size(), nullptr, &result, &e) != KV_OK) {
    ADD_FAILURE() << e.message;
    return {};
  }
  return {result.rows, result.rows + result.width};
}

inline std::vector<float> decode(kv_context* context, kv_sequence sequence, int32_t token) {
  return prefill(context, sequence, {token});
}

inline uint64_t length_of(kv_context* context, kv_sequence sequence) {
  Error e;
  uint64_t length = UINT64_MAX;
  if (kv_sequence_length(context, sequence, &length, &e) != KV_OK) ADD_FAILURE() << e.message;
  return length;
}

}  // namespace kvasir::test
