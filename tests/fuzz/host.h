// SPDX-License-Identifier: MIT
//
// An application for the targets that go through the public API: one runtime, small contexts on `ref`, and a check that
// every answer is one an application can live with. The backend is built in or comes from KVASIR_TEST_PLUGINS.
#pragma once

#include <cstdlib>
#include <memory>

#include "fuzz/bytes.h"
#include "kvasir/kvasir.h"

namespace kvasir::fuzz {

struct Error : kv_error {
  Error() : kv_error{} { struct_size = sizeof(kv_error); }
};

template <class T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

// A failure has a sentence, and a bug is never the reason.
inline kv_status judged(kv_status status, const Error& error) {
  if (status != KV_OK) {
    KV_REQUIRE(error.code == status);
    KV_REQUIRE(error.message[0] != '\0');
    if (status == KV_INTERNAL) std::fprintf(stderr, "said: %s\n", error.message);
    KV_REQUIRE(status != KV_INTERNAL);
    KV_REQUIRE(status > 0 && status <= KV_TIMEOUT);
  }
  return status;
}

inline kv_runtime* runtime() {
  static kv_runtime* const made = [] {
    kv_runtime_options options = sized<kv_runtime_options>();
    options.flags = KV_RUNTIME_ALLOW_UNTRUSTED;  // build trees may be group-writable
    options.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
    kv_runtime* out = nullptr;
    Error e;
    KV_REQUIRE(kv_runtime_create(&options, &out, &e) == KV_OK);
    return out;
  }();
  return made;
}

inline kv_context_options small_options() {
  kv_context_options options = sized<kv_context_options>();
  options.device = "ref";
  options.max_tokens = 24;
  options.max_batch_tokens = 4;
  options.page_tokens = 4;
  options.max_sequences = 3;
  options.k_type = options.v_type = KV_TYPE_F32;
  return options;
}

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* handle) const { release(handle); }
};
using ModelPtr = std::unique_ptr<kv_model, Release<kv_model, kv_model_release>>;
using BuilderPtr = std::unique_ptr<kv_model_builder, Release<kv_model_builder, kv_model_builder_release>>;
using ContextPtr = std::unique_ptr<kv_context, Release<kv_context, kv_context_release>>;

// What a model that was accepted must stand: a context, a prompt, and the same prompt token by token, bit for bit.
void run_model(kv_model* model);

}  // namespace kvasir::fuzz
