// SPDX-License-Identifier: MIT
//
// What an operation under failing allocations works on: a runtime, a tiny model, a context with three sequences, and
// the slots an operation puts its objects into. Built anew for every failure, so that nothing can leak unseen.
#pragma once

#include "faults/observe.h"
#include "support/toy_model.h"

namespace kvasir::test {

enum class Stage { kNothing, kRuntime, kModel, kContext };  // how much of a world exists before the operation

struct World {
  World(Stage stage, std::string device, uint32_t threads) : device_name(std::move(device)), thread_count(threads) {
    if (stage == Stage::kNothing) return;
    runtime = make_runtime();
    if (stage == Stage::kRuntime) return;
    kv_model_config config = small_config();
    config.dim = 8;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = kRowWidth;
    config.ffn_dim = 8;
    config.vocab = 16;
    model = random_model(runtime.get(), config, 3);
    if (stage == Stage::kModel) return;
    context = make_context(model.get(), options());
    // 0: 6 tokens. 1: a fork of it. 2: empty.
    kv_sequence made = 0;
    Error e;
    prefill(context.get(), 0, {1, 2, 3, 4, 5, 6});
    if (kv_sequence_fork(context.get(), 0, 6, &made, &e) != KV_OK) ADD_FAILURE() << e.message;
    if (kv_sequence_create(context.get(), &made, &e) != KV_OK) ADD_FAILURE() << e.message;
  }

  kv_context_options options() const {
    kv_context_options o = sized<kv_context_options>();
    o.device = device_name.c_str();
    o.threads = thread_count;
    o.page_tokens = 4;
    o.max_batch_tokens = 5;
    o.max_tokens = 64;
    o.max_sequences = 4;
    return o;
  }

  std::string state() const {
    return context == nullptr ? "" : difference(observe(context.get(), 8, 2, kRowWidth), seen_before);
  }
  void remember() {
    if (context != nullptr) seen_before = observe(context.get(), 8, 2, kRowWidth);
  }

  // What the operation yields; compared between a run that was disturbed first and one that was not.
  template <class T>
  void yield(const T* data, size_t count) {
    yielded.append(reinterpret_cast<const char*>(data), count * sizeof(T));
  }

  static constexpr uint32_t kRowWidth = 4;
  std::string device_name;
  uint32_t thread_count;
  RuntimePtr runtime;
  ModelPtr model, second_model;
  BuilderPtr builder;
  ContextPtr context, second_context;
  ReportPtr report;
  CancelPtr cancel;
  SamplerPtr sampler;
  StreamPtr stream;
  std::string yielded;
  bool undone = false;  // some inputs of the failed step were done, and were taken back since
  ContextState seen_before;
};

}  // namespace kvasir::test
