// SPDX-License-Identifier: MIT
//
// Loading, information, metadata. The builder is in builder_api.cpp.
#include "api/boundary.h"
#include "api/handles.h"
#include "api/shared_model.h"
#include "base/float_state.h"
#include "runtime/cancel.h"

using kvasir::Gguf;
using kvasir::GgufType;
using kvasir::MetadataValue;
using kvasir::Status;
using kvasir::api::check_out;
using kvasir::api::copy_in;
using kvasir::api::copy_out;
using kvasir::api::guard;
using kvasir::api::wrap;

namespace {

Status copy_model_options(const kv_model_options* options, uint32_t allowed, kv_model_options* out) {
  KV_RETURN_IF_ERROR(copy_in("kv_model_options", options, out));
  KV_CHECK((out->flags & ~allowed) == 0, KV_UNSUPPORTED, "model flags 0x%x do not apply to this call",
           out->flags & ~allowed);
  KV_CHECK(!kvasir::stop_requested(kvasir::stop_word(out->cancel)), KV_CANCELLED, "cancelled before it began");
  return {};
}

Status open_model(kv_runtime* runtime, std::shared_ptr<const Gguf> gguf, const kv_model_options& options,
                  kv_model** out) {
  std::shared_ptr<kvasir::Model> model;
  const uint64_t bytes = gguf->source(0).size();
  KV_RETURN_IF_ERROR(kvasir::Model::from_gguf(runtime->runtime, std::move(gguf), &model));
  KV_RETURN_IF_ERROR(wrap(std::move(model), out));
  if (options.progress == nullptr) return {};
  const kvasir::HostFloatState floats;
  options.progress(options.progress_user, bytes, bytes);
  return {};
}

uint32_t kind_of(GgufType type) {
  switch (type) {
    case GgufType::f32:
    case GgufType::f64: return KV_METADATA_FLOAT;
    case GgufType::boolean: return KV_METADATA_BOOL;
    case GgufType::string: return KV_METADATA_STRING;
    case GgufType::array: return KV_METADATA_ARRAY;
    default: return KV_METADATA_INTEGER;
  }
}

Status fill_metadata(const MetadataValue& value, kv_metadata* out) {
  kv_metadata m = {};
  m.kind = kind_of(value.type);
  m.key = value.key.data();
  m.key_length = value.key.size();
  m.count = 1;
  switch (m.kind) {
    case KV_METADATA_FLOAT: KV_RETURN_IF_ERROR(value.as_f64(&m.real)); break;
    case KV_METADATA_BOOL: {
      bool b = false;
      KV_RETURN_IF_ERROR(value.as_bool(&b));
      m.integer = b ? 1 : 0;
      break;
    }
    case KV_METADATA_STRING: {
      std::string_view text;
      KV_RETURN_IF_ERROR(value.as_string(&text));
      m.text = text.data();
      m.length = text.size();
      break;
    }
    case KV_METADATA_ARRAY:
      m.count = value.count;
      m.element_kind = kind_of(value.element);
      break;
    default:
      if (value.type == GgufType::u64) {
        uint64_t u = 0;
        KV_RETURN_IF_ERROR(value.as_u64(&u));
        m.integer = static_cast<int64_t>(u);
        m.is_unsigned = 1;
      } else {
        KV_RETURN_IF_ERROR(value.as_i64(&m.integer));
      }
  }
  copy_out(m, out);
  return {};
}

Status metadata_of(const kv_model* model, const Gguf** out) {
  KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
  *out = model->shared->model->gguf();
  KV_CHECK(*out != nullptr, KV_NOT_FOUND, "a model built from tensors has no metadata");
  return {};
}

Status find_metadata(const kv_model* model, const char* key, MetadataValue* out) {
  const Gguf* gguf = nullptr;
  KV_RETURN_IF_ERROR(metadata_of(model, &gguf));
  KV_CHECK(key != nullptr, KV_INVALID_ARGUMENT, "key is NULL");
  const auto found = gguf->find(key);
  KV_CHECK(found, KV_NOT_FOUND, "the model has no key '%s'", key);
  *out = *found;
  return {};
}

}  // namespace

extern "C" {

kv_status kv_model_load_file(kv_runtime* runtime, const char* path, const kv_model_options* options, kv_model** out,
                             kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(runtime != nullptr, KV_INVALID_ARGUMENT, "runtime is NULL");
    KV_CHECK(path != nullptr, KV_INVALID_ARGUMENT, "path is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_model_options own;
    KV_RETURN_IF_ERROR(copy_model_options(options, KV_MODEL_MAP_FILE, &own));
    const auto access = (own.flags & KV_MODEL_MAP_FILE) != 0 ? kvasir::FileAccess::map : kvasir::FileAccess::read;
    std::shared_ptr<const Gguf> gguf;
    KV_RETURN_IF_ERROR(kvasir::open_gguf(path, access, &gguf));
    return open_model(runtime, std::move(gguf), own, out);
  });
}

kv_status kv_model_load_memory(kv_runtime* runtime, const void* data, size_t size, const kv_model_options* options,
                               kv_model** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(runtime != nullptr, KV_INVALID_ARGUMENT, "runtime is NULL");
    KV_CHECK(data != nullptr, KV_INVALID_ARGUMENT, "data is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_model_options own;
    KV_RETURN_IF_ERROR(copy_model_options(options, KV_MODEL_BORROW_MEMORY, &own));
    const bool borrow = (own.flags & KV_MODEL_BORROW_MEMORY) != 0;
    std::shared_ptr<const kvasir::ByteSource> source;
    KV_RETURN_IF_ERROR(
        kvasir::make_memory_source({static_cast<const uint8_t*>(data), size},
                                   borrow ? kvasir::MemoryOwnership::borrow : kvasir::MemoryOwnership::copy, &source));
    std::shared_ptr<const Gguf> gguf;
    KV_RETURN_IF_ERROR(kvasir::parse_gguf({std::move(source)}, &gguf));
    return open_model(runtime, std::move(gguf), own, out);
  });
}

void kv_model_release(kv_model* model) { delete model; }

kv_status kv_model_prepare(kv_model* model, const char* device, const kv_model_options* options, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
    kv_model_options own;
    KV_RETURN_IF_ERROR(copy_model_options(options, 0, &own));
    const std::shared_ptr<kvasir::Model> held = model->shared->model;  // a callback may release the handle
    kvasir::Model& m = *held;
    std::shared_ptr<const kvasir::Device> opened;
    KV_RETURN_IF_ERROR(m.device(device, nullptr, &opened, nullptr));
    const kvasir::LoadControl control = {own.progress, own.progress_user, kvasir::stop_word(own.cancel)};
    std::shared_ptr<const kvasir::DeviceWeights> weights;
    return m.weights_on(std::move(opened), m.compute_mode(KV_COMPUTE_DEFAULT), control, &weights);
  });
}

kv_status kv_model_get_info(const kv_model* model, kv_model_info* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_model_info", out));
    const kvasir::Model& m = *model->shared->model;
    const kvasir::ModelConfig& c = m.config();
    kv_model_info info = {};
    info.layers = c.layers;
    info.architecture = c.architecture.c_str();
    info.name = c.name.c_str();
    info.dim = c.dim;
    info.heads = c.heads;
    info.kv_heads = c.kv_heads;
    info.head_dim = c.head_dim;
    info.v_head_dim = c.v_head_dim;
    info.ffn_dim = c.ffn_dim;
    info.vocab = c.output ? c.vocab : 0;
    info.context_length = c.context_length;
    info.parameters = m.parameters();
    info.tensor_bytes = m.tensor_bytes();
    info.tensors = static_cast<uint32_t>(m.weights().count());
    info.metadata = m.gguf() == nullptr ? 0 : static_cast<uint32_t>(m.gguf()->metadata_count());
    copy_out(info, out);
    return {};
  });
}

kv_status kv_model_metadata_at(const kv_model* model, size_t index, kv_metadata* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_RETURN_IF_ERROR(check_out("kv_metadata", out));
    const Gguf* gguf = nullptr;
    KV_RETURN_IF_ERROR(metadata_of(model, &gguf));
    KV_CHECK(index < gguf->metadata_count(), KV_INVALID_ARGUMENT, "key %zu of a model that has %zu", index,
             gguf->metadata_count());
    return fill_metadata(gguf->metadata(index), out);
  });
}

kv_status kv_model_metadata_find(const kv_model* model, const char* key, kv_metadata* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_RETURN_IF_ERROR(check_out("kv_metadata", out));
    MetadataValue value;
    KV_RETURN_IF_ERROR(find_metadata(model, key, &value));
    return fill_metadata(value, out);
  });
}

kv_status kv_model_metadata_element(const kv_model* model, const char* key, uint64_t index, kv_metadata* out,
                                    kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_RETURN_IF_ERROR(check_out("kv_metadata", out));
    MetadataValue array, element;
    KV_RETURN_IF_ERROR(find_metadata(model, key, &array));
    KV_RETURN_IF_ERROR(array.element_at(index, &element));
    return fill_metadata(element, out);
  });
}

kv_status kv_model_tensor_at(const kv_model* model, size_t index, kv_tensor_info* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_tensor_info", out));
    const kvasir::WeightSource& weights = model->shared->model->weights();
    KV_CHECK(index < weights.count(), KV_INVALID_ARGUMENT, "tensor %zu of a model that has %zu", index,
             weights.count());
    const kvasir::TensorInfo& tensor = weights.info(index);
    kv_tensor_info info = {};
    info.type = tensor.type;
    info.name = tensor.name.c_str();
    for (size_t d = 0; d < 4; d++) info.shape[d] = tensor.dims[3 - d];  // files write the row length first
    info.bytes = tensor.bytes;
    copy_out(info, out);
    return {};
  });
}

}  // extern "C"
