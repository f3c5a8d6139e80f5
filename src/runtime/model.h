// SPDX-License-Identifier: MIT
//
// Model: configuration, tokenizer, weights and the program made of them; device-free and immutable, but for the list of
// devices that hold its weights. Thread-safe.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "model/config.h"
#include "model/gguf.h"
#include "model/weights.h"
#include "program/program.h"
#include "runtime/device_weights.h"
#include "runtime/runtime.h"
#include "text/tokenizer.h"

namespace kvasir {

class Model {
 public:
  static Status from_gguf(std::shared_ptr<Runtime> runtime, std::shared_ptr<const Gguf> gguf,
                          std::shared_ptr<Model>* out);
  static Status from_tensors(std::shared_ptr<Runtime> runtime, ModelConfig config,
                             std::shared_ptr<const WeightSource> weights, std::shared_ptr<Model>* out);

  Runtime& runtime() const { return *runtime_; }
  const ModelConfig& config() const { return config_; }
  const WeightSource& weights() const { return *weights_; }
  const Gguf* gguf() const { return gguf_.get(); }                 // null: built from tensors
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null: the file has none
  const Program& program() const { return program_; }
  uint64_t parameters() const { return parameters_; }
  uint64_t tensor_bytes() const { return tensor_bytes_; }

  // KV_COMPUTE_DEFAULT resolved: fast for models with block-quantised matrices.
  uint32_t compute_mode(uint32_t asked) const;

  // The device in that variant, opened on first use. `choice` (may be null) tells how "auto" was decided.
  Status device(const char* spec, const char* variant, std::shared_ptr<const Device>* out, Choice* choice);

  // The weights on a device, made on first use and kept while the model lives. One thread makes them; others wait for
  // it, each until its own `control` says stop. KV_BUSY: the caller is a callback of the call that makes them.
  Status weights_on(std::shared_ptr<const Device> device, uint32_t compute_mode, const LoadControl& control,
                    std::shared_ptr<const DeviceWeights>* out);

 private:
  Model() = default;
  Status finish();

  std::shared_ptr<Runtime> runtime_;
  ModelConfig config_;
  std::shared_ptr<const Gguf> gguf_;
  std::shared_ptr<const WeightSource> weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Program program_;
  uint64_t parameters_ = 0, tensor_bytes_ = 0;

  class LoadTurn;
  std::shared_ptr<const DeviceWeights> find_loaded(const Device& device, const std::vector<uint32_t>& types) const;

  std::mutex mutex_;  // of what follows; not held while weights are made
  std::condition_variable turn_over_;
  std::thread::id loader_;  // the thread that makes weights now; no thread: nobody
  pid_t loader_process_ = 0;
  struct Opened {
    std::string variant;  // as asked for
    std::shared_ptr<const Device> device;
  };
  std::vector<Opened> devices_;
  std::vector<std::shared_ptr<const DeviceWeights>> loaded_;
};

// What conversions at load may lose in a compute mode.
Loss allowed_loss(uint32_t compute_mode);

}  // namespace kvasir
