// SPDX-License-Identifier: MIT
//
// A program that ends with everything alive, in the way its argument names. argv: model file, way, "idle" or "working".
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <unistd.h>

#include "kvasir/kvasir.h"

namespace {

template <class T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

kv_context* make(kv_model* model, const char* device) {
  kv_context_options o = sized<kv_context_options>();
  o.device = device;
  o.threads = 2;
  kv_context* context = nullptr;
  if (kv_context_create(model, &o, &context, nullptr) != KV_OK) _exit(100);
  return context;
}

void work(kv_context* context) {
  const int32_t tokens[] = {1, 2, 3};
  if (kv_prefill(context, 0, tokens, 3, nullptr, nullptr, nullptr) != KV_OK) _exit(101);
  if (kv_sequence_truncate(context, 0, 0, nullptr) != KV_OK) _exit(102);
}

int leave(const std::string& way) {
  if (way == "exit") std::exit(42);
  if (way == "quick_exit") std::quick_exit(42);
  if (way == "_exit") _exit(42);
  if (way == "thread") {
    std::thread([] { std::exit(42); }).join();
  }
  return 42;  // "return"
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 103;
  kv_runtime_options o = sized<kv_runtime_options>();
  o.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
  o.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
  static kv_runtime* runtime = nullptr;
  static kv_model* model = nullptr;
  if (kv_runtime_create(&o, &runtime, nullptr) != KV_OK) return 104;
  if (kv_model_load_file(runtime, arguments[1], nullptr, &model, nullptr) != KV_OK) return 105;
  // Static: a leak checker sees that somebody still knows them.
  static kv_context* const contexts[] = {make(model, "cpu"), make(model, "cpu"), make(model, "ref")};
  for (kv_context* context : contexts) work(context);
  if (std::strcmp(arguments[3], "working") == 0) {
    static std::atomic<int> rounds{0};  // lives as long as the threads may look at it
    for (kv_context* context : {contexts[1], contexts[2]}) {
      std::thread([context] {
        for (;; rounds++) work(context);
      }).detach();
    }
    while (rounds < 3) std::this_thread::yield();
  }
  return leave(arguments[2]);
}
