// SPDX-License-Identifier: MIT
//
// Models from the caller's tensors, and the handle that both kinds of models get.
#include "api/boundary.h"
#include "api/handles.h"
#include "api/shared_model.h"

using kvasir::Activation;
using kvasir::ModelConfig;
using kvasir::NormKind;
using kvasir::RopePairing;
using kvasir::Status;
using kvasir::api::copy_in;
using kvasir::api::guard;
using kvasir::api::wrap;

namespace kvasir::api {

Status wrap(std::shared_ptr<Model> model, kv_model** out) {
  auto shared = std::make_shared<SharedModel>();
  shared->tokenizer.tokenizer = model->tokenizer();
  shared->tokenizer.model = model;
  shared->model = std::move(model);
  auto handle = std::make_unique<kv_model>();
  handle->shared = std::move(shared);
  *out = handle.release();
  return {};
}

}  // namespace kvasir::api

namespace {

Status check_choices(const kv_model_config& c) {
  KV_CHECK(c.norm <= KV_NORM_NONE, KV_INVALID_ARGUMENT, "norm %u is not known", c.norm);
  KV_CHECK(c.activation <= KV_ACTIVATION_RELU, KV_INVALID_ARGUMENT, "activation %u is not known", c.activation);
  KV_CHECK(c.rope <= KV_ROPE_HALVES, KV_INVALID_ARGUMENT, "rope %u is not known", c.rope);
  KV_CHECK(c.no_residual <= 1, KV_INVALID_ARGUMENT, "no_residual is %u, not 0 or 1", c.no_residual);
  KV_CHECK(c.no_output_projection <= 1, KV_INVALID_ARGUMENT, "no_output_projection is %u, not 0 or 1",
           c.no_output_projection);
  KV_CHECK(c.reserved == 0, KV_UNSUPPORTED, "the reserved field of the model configuration is %u, not 0", c.reserved);
  KV_CHECK(c.heads != 0, KV_INVALID_ARGUMENT, "the model has 0 heads");
  return {};
}

// Zero means default; what the defaults are stands in kvasir.h.
Status configure(const kv_model_config& c, ModelConfig* out) {
  KV_RETURN_IF_ERROR(check_choices(c));
  ModelConfig config;
  config.architecture = "custom";
  config.layers = c.layers;
  config.dim = c.dim;
  config.heads = c.heads;
  config.kv_heads = c.kv_heads != 0 ? c.kv_heads : c.heads;
  config.head_dim = c.head_dim != 0 ? c.head_dim : c.dim / c.heads;
  config.v_head_dim = config.head_dim;
  config.ffn_dim = c.ffn_dim;
  config.vocab = c.vocab;
  config.context_length = c.context_length;
  config.embedding = c.vocab != 0;
  config.output = c.vocab != 0;
  config.norm = c.norm == KV_NORM_RMS ? NormKind::rms : NormKind::none;
  if (c.norm_epsilon != 0.0F) config.norm_eps = c.norm_epsilon;
  config.residual = c.no_residual == 0;
  config.attention_scale = c.attention_scale;
  config.attention_output = c.no_output_projection == 0;
  config.rope.pairing = static_cast<RopePairing>(c.rope);  // same order, checked above
  config.rope.dims = c.rope == KV_ROPE_NONE ? 0 : c.rope_dims != 0 ? c.rope_dims : config.head_dim;
  if (c.rope_theta != 0.0F) config.rope.theta = c.rope_theta;
  config.ffn = c.ffn_dim != 0 ? kvasir::FfnKind::gated : kvasir::FfnKind::none;
  config.activation = static_cast<Activation>(c.activation);
  if (c.window != 0) config.layer_window.assign(c.layers <= (1u << 16) ? c.layers : 0, c.window);
  *out = std::move(config);
  return {};
}

}  // namespace

extern "C" {

kv_status kv_model_builder_create(kv_runtime* runtime, const kv_model_config* config, kv_model_builder** out,
                                  kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(runtime != nullptr, KV_INVALID_ARGUMENT, "runtime is NULL");
    KV_CHECK(config != nullptr, KV_INVALID_ARGUMENT, "config is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_model_config own;
    KV_RETURN_IF_ERROR(copy_in("kv_model_config", config, &own));
    auto builder = std::make_unique<kv_model_builder>();
    KV_RETURN_IF_ERROR(configure(own, &builder->config));
    KV_RETURN_IF_ERROR(kvasir::validate(builder->config));
    builder->runtime = runtime->runtime;
    *out = builder.release();
    return {};
  });
}

kv_status kv_model_builder_add(kv_model_builder* builder, const char* name, uint32_t type, uint32_t rows,
                               uint32_t width, const void* data, size_t bytes, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(builder != nullptr, KV_INVALID_ARGUMENT, "builder is NULL");
    KV_CHECK(name != nullptr, KV_INVALID_ARGUMENT, "name is NULL");
    KV_CHECK(data != nullptr, KV_INVALID_ARGUMENT, "the data of tensor '%s' is NULL", name);
    kvasir::TensorInfo info;
    info.name = name;
    info.type = type;
    info.dim_count = rows == 1 ? 1 : 2;
    info.dims[0] = width;
    info.dims[1] = rows;
    return builder->weights.add(std::move(info), data, bytes, kvasir::MemoryOwnership::copy);
  });
}

kv_status kv_model_builder_finish(kv_model_builder* builder, kv_model** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(builder != nullptr, KV_INVALID_ARGUMENT, "builder is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    std::shared_ptr<const kvasir::WeightSource> weights;
    KV_RETURN_IF_ERROR(builder->weights.build(&weights));
    ModelConfig config = builder->config;
    config.tied_output = config.output && !weights->find("output.weight");
    config.qk_norm = weights->find("blk.0.attn_q_norm.weight").has_value();
    std::shared_ptr<kvasir::Model> model;
    KV_RETURN_IF_ERROR(kvasir::Model::from_tensors(builder->runtime, std::move(config), std::move(weights), &model));
    KV_RETURN_IF_ERROR(wrap(std::move(model), out));
    builder->weights.clear();
    return {};
  });
}

void kv_model_builder_release(kv_model_builder* builder) { delete builder; }

}  // extern "C"
