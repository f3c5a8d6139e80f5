// SPDX-License-Identifier: MIT
#include "runtime/model.h"

#include <utility>

#include "arch/arch.h"
#include "model/tensors.h"
#include "model/types.h"
#include "model/vocabulary.h"

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

Status Model::weights_on(std::shared_ptr<const Device> device, uint32_t compute_mode, const LoadControl& control,
                         std::shared_ptr<const DeviceWeights>* out) {
  // Where the device runs every type as it is, both modes share one copy.
  const Loss loss = allowed_loss(compute_mode);
  std::vector<uint32_t> types;
  KV_RETURN_IF_ERROR(DeviceWeights::choose_types(*device, program_, *weights_, loss, &types));

  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<const DeviceWeights>& loaded : loaded_) {
    if (&loaded->device() == device.get() && loaded->types() == types) {
      *out = loaded;
      return {};
    }
  }
  std::shared_ptr<const DeviceWeights> weights;
  KV_RETURN_IF_ERROR(DeviceWeights::load(std::move(device), program_, *weights_, loss, control, &weights));
  loaded_.push_back(weights);
  *out = std::move(weights);
  return {};
}

}  // namespace kvasir
