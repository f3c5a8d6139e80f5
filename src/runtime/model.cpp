// SPDX-License-Identifier: MIT
#include "runtime/model.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "arch/arch.h"
#include "model/tensors.h"
#include "model/types.h"
#include "model/vocabulary.h"
#include "runtime/cancel.h"

namespace kvasir {

Status Model::from_gguf(std::shared_ptr<Runtime> runtime, std::shared_ptr<const Gguf> gguf,
                        std::shared_ptr<Model>* out) {
  std::shared_ptr<Model> model(new Model);
  model->runtime_ = std::move(runtime);
  KV_RETURN_IF_ERROR(config_from_gguf(*gguf, &model->config_));
  KV_RETURN_IF_ERROR(make_gguf_weights(gguf, &model->weights_));
  Vocabulary vocabulary;
  bool present = false;
  KV_RETURN_IF_ERROR(vocabulary_from_gguf(*gguf, &vocabulary, &present));
  if (present) KV_RETURN_IF_ERROR(Tokenizer::create(std::move(vocabulary), &model->tokenizer_));
  model->gguf_ = std::move(gguf);
  KV_RETURN_IF_ERROR(model->finish());
  *out = std::move(model);
  return {};
}

Status Model::from_tensors(std::shared_ptr<Runtime> runtime, ModelConfig config,
                           std::shared_ptr<const WeightSource> weights, std::shared_ptr<Model>* out) {
  std::shared_ptr<Model> model(new Model);
  model->runtime_ = std::move(runtime);
  model->config_ = std::move(config);
  model->weights_ = std::move(weights);
  KV_RETURN_IF_ERROR(model->finish());
  *out = std::move(model);
  return {};
}

Status Model::finish() {
  KV_RETURN_IF_ERROR(validate(config_));
  KV_RETURN_IF_ERROR(check_tensors(config_, *weights_));
  KV_RETURN_IF_ERROR(build_program(config_, *weights_, &program_));
  for (size_t i = 0; i < weights_->count(); i++) {
    parameters_ += weights_->info(i).rows * weights_->info(i).dims[0];
    tensor_bytes_ += weights_->info(i).bytes;
  }
  return {};
}

uint32_t Model::compute_mode(uint32_t asked) const {
  if (asked != KV_COMPUTE_DEFAULT) return asked;
  for (const WeightUse& use : program_.weights) {
    const TypeInfo* type = type_info(weights_->info(use.tensor).type);
    if (type != nullptr && type->block_values > 1) return KV_COMPUTE_FAST;
  }
  return KV_COMPUTE_EXACT;
}

Loss allowed_loss(uint32_t compute_mode) { return compute_mode == KV_COMPUTE_EXACT ? Loss::none : Loss::small; }

Status Model::device(const char* spec, const char* variant, std::shared_ptr<const Device>* out, Choice* choice) {
  Choice chosen;
  KV_RETURN_IF_ERROR(runtime_->registry().choose(spec, &chosen));
  const std::string name = chosen.backend->name + ":" + std::to_string(chosen.device);
  const std::string asked = variant == nullptr ? "" : variant;

  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Device> device;
  for (const Opened& opened : devices_) {
    if (opened.variant == asked && opened.device->name() == name) device = opened.device;
  }
  if (device == nullptr) {
    std::unique_ptr<Device> opened;
    KV_RETURN_IF_ERROR(Device::open(runtime_, chosen, variant, &opened));
    device = std::move(opened);
    devices_.push_back({asked, device});
  }
  *out = std::move(device);
  if (choice != nullptr) *choice = std::move(chosen);
  return {};
}

std::shared_ptr<const DeviceWeights> Model::find_loaded(const Device& device,
                                                        const std::vector<uint32_t>& types) const {
  for (const std::shared_ptr<const DeviceWeights>& loaded : loaded_) {
    if (&loaded->device() == &device && loaded->types() == types) return loaded;
  }
  return nullptr;
}

// The right to make weights, given back at the end of the scope; one at a time for each model.
class Model::LoadTurn {
 public:
  explicit LoadTurn(Model& model) : model_(model), lock_(model.mutex_) {}
  ~LoadTurn() {
    if (!mine_) return;
    if (!lock_.owns_lock()) lock_.lock();
    model_.loader_ = {};
    model_.turn_over_.notify_all();
  }

  // Waits until nobody makes weights; after `found` weights there is nothing to do.
  Status wait(const Device& device, const std::vector<uint32_t>& types, const uint32_t* stop,
              std::shared_ptr<const DeviceWeights>* found) {
    for (;;) {
      KV_CHECK(!stop_requested(stop), KV_CANCELLED, "cancelled before the weights were there");
      *found = model_.find_loaded(device, types);
      // In a child process the thread that was loading in the parent does not exist.
      if (*found != nullptr || model_.loader_ == std::thread::id() || model_.loader_process_ != getpid()) return {};
      KV_CHECK(model_.loader_ != std::this_thread::get_id(), KV_BUSY,
               "the weights are being made by the call whose callback this is");
      model_.turn_over_.wait_for(lock_, kStopInterval);
    }
  }

  void begin() {
    model_.loaded_.reserve(model_.loaded_.size() + 1);
    model_.loader_ = std::this_thread::get_id();
    model_.loader_process_ = getpid();
    mine_ = true;
    lock_.unlock();
  }

  void end(const std::shared_ptr<const DeviceWeights>& weights) {
    lock_.lock();
    model_.loaded_.push_back(weights);
  }

 private:
  static constexpr std::chrono::milliseconds kStopInterval{5};  // setting a kv_cancel wakes nobody

  Model& model_;
  std::unique_lock<std::mutex> lock_;
  bool mine_ = false;
};

Status Model::weights_on(std::shared_ptr<const Device> device, uint32_t compute_mode, const LoadControl& control,
                         std::shared_ptr<const DeviceWeights>* out) {
  // Where the device runs every type as it is, both modes share one copy.
  const Loss loss = allowed_loss(compute_mode);
  std::vector<uint32_t> types;
  KV_RETURN_IF_ERROR(DeviceWeights::choose_types(*device, program_, *weights_, loss, &types));

  LoadTurn turn(*this);
  std::shared_ptr<const DeviceWeights> weights;
  KV_RETURN_IF_ERROR(turn.wait(*device, types, control.stop, &weights));
  if (weights == nullptr) {
    turn.begin();
    KV_RETURN_IF_ERROR(DeviceWeights::load(std::move(device), program_, *weights_, loss, control, &weights));
    turn.end(weights);
  }
  *out = std::move(weights);
  return {};
}

}  // namespace kvasir
