// SPDX-License-Identifier: MIT
//
// Operations on runtimes, models, builders and the creation of contexts.
#include "faults/injector.h"
#include "faults/operations.h"

namespace kvasir::test {
namespace {

// Takes a new object over when its call succeeded; a failing call must have left the pointer alone.
template <class Pointer, class T>
kv_status keep(kv_status status, T*& made, Pointer* slot) {
  EXPECT_EQ(made != nullptr, status == KV_OK) << "an out parameter of a call that failed was written";
  if (status == KV_OK) slot->reset(made);
  return status;
}

kv_status create_runtime(World& w, kv_error* error) {
  kv_runtime_options options = sized<kv_runtime_options>();
  options.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
  options.backend_path = std::getenv("KVASIR_TEST_PLUGINS");
  kv_runtime* made = nullptr;
  return keep(failing([&] { return kv_runtime_create(&options, &made, error); }), made, &w.runtime);
}

kv_status create_report(World& w, kv_error* error) {
  kv_backend_report* made = nullptr;
  const kv_status status =
      keep(failing([&] { return kv_backend_report_create(w.runtime.get(), &made, error); }), made, &w.report);
  for (size_t i = 0; status == KV_OK && i < kv_backend_report_count(made); i++) {
    kv_backend_entry entry = sized<kv_backend_entry>();
    EXPECT_EQ(kv_backend_report_entry(made, i, &entry, nullptr), KV_OK);
    w.yielded += std::string(entry.name) + ":" + kv_status_name(entry.status) + ":" + entry.reason + "\n";
    kv_device_info device = sized<kv_device_info>();
    for (uint32_t d = 0; d < entry.device_count; d++) {
      EXPECT_EQ(kv_backend_report_device(made, i, d, &device, nullptr), KV_OK);
      w.yielded += std::string(device.name) + "\n";
    }
  }
  return status;
}

kv_status load_backend(World& w, kv_error* error) {
  const std::string path =
      std::string(std::getenv("KVASIR_TEST_PLUGINS")) + "/libkvasir_backend_" + w.device_name + ".v0.so";
  return failing([&] { return kv_runtime_load_backend(w.runtime.get(), path.c_str(), error); });
}

// Logits of the model that was loaded last, after the failures.
void use_model(World& w) {
  const ContextPtr context = make_context(w.second_model.get(), w.options());
  if (context == nullptr) return;
  const std::vector<float> logits = prefill(context.get(), 0, {3, 4, 5});
  w.yield(logits.data(), logits.size());
}

kv_status load_file(World& w, const std::string& path, uint32_t flags, kv_error* error) {
  kv_model_options options = sized<kv_model_options>();
  options.flags = flags;
  kv_model* made = nullptr;
  return keep(failing([&] { return kv_model_load_file(w.runtime.get(), path.c_str(), &options, &made, error); }), made,
              &w.second_model);
}

kv_status load_memory(World& w, const std::vector<uint8_t>& bytes, uint32_t flags, kv_error* error) {
  kv_model_options options = sized<kv_model_options>();
  options.flags = flags;
  kv_model* made = nullptr;
  return keep(failing([&] {
                return kv_model_load_memory(w.runtime.get(), bytes.data(), bytes.size(), &options, &made, error);
              }),
              made, &w.second_model);
}

kv_model_config bare_config() {
  kv_model_config config = sized<kv_model_config>();
  config.layers = 1;
  config.dim = 2;
  config.heads = 1;
  config.norm = KV_NORM_NONE;
  config.no_output_projection = 1;
  return config;
}

kv_status create_builder(World& w, kv_error* error) {
  const kv_model_config config = bare_config();
  kv_model_builder* made = nullptr;
  return keep(failing([&] { return kv_model_builder_create(w.runtime.get(), &config, &made, error); }), made,
              &w.builder);
}

kv_status add_one(World& w, const char* name, kv_error* error) {
  const float data[4] = {1, 2, 3, 4};
  return failing(
      [&] { return kv_model_builder_add(w.builder.get(), name, KV_TYPE_F32, 2, 2, data, sizeof data, error); });
}

void fill_builder(World& w) {
  Error e;
  OK(create_builder(w, &e));
  OK(add_one(w, "blk.0.attn_q.weight", &e));
  OK(add_one(w, "blk.0.attn_k.weight", &e));
}

kv_status finish_builder(World& w, kv_error* error) {
  kv_model* made = nullptr;
  return keep(failing([&] { return kv_model_builder_finish(w.builder.get(), &made, error); }), made, &w.second_model);
}

kv_status read_model(World& w, kv_error* error) {
  kv_model_info info = sized<kv_model_info>();
  const kv_status status = failing([&] { return kv_model_get_info(w.second_model.get(), &info, error); });
  if (status != KV_OK) return status;
  w.yield(&info.parameters, 1);
  for (size_t i = 0; i < info.metadata; i++) {
    kv_metadata pair = sized<kv_metadata>();
    if (const kv_status s = failing([&] { return kv_model_metadata_at(w.second_model.get(), i, &pair, error); });
        s != KV_OK)
      return s;
    w.yield(pair.key, pair.key_length);
  }
  kv_metadata found = sized<kv_metadata>();
  if (const kv_status s =
          failing([&] { return kv_model_metadata_find(w.second_model.get(), "general.name", &found, error); });
      s != KV_OK) {
    return s;
  }
  if (const kv_status s = failing(
          [&] { return kv_model_metadata_element(w.second_model.get(), "tokenizer.ggml.tokens", 8, &found, error); });
      s != KV_OK) {
    return s;
  }
  w.yield(found.text, found.length);
  kv_tensor_info tensor = sized<kv_tensor_info>();
  return failing([&] { return kv_model_tensor_at(w.second_model.get(), 1, &tensor, error); });
}

kv_status plan_context(World& w, kv_error* error) {
  kv_memory_plan plan = sized<kv_memory_plan>();
  const kv_context_options options = w.options();
  const kv_status status = failing([&] { return kv_context_plan(w.model.get(), &options, &plan, error); });
  if (status == KV_OK) w.yield(&plan, 1);
  return status;
}

kv_status create_context(World& w, kv_model* model, kv_error* error) {
  const kv_context_options options = w.options();
  kv_context* made = nullptr;
  const kv_status status =
      keep(failing([&] { return kv_context_create(model, &options, &made, error); }), made, &w.second_context);
  if (status == KV_OK) w.yield("ok", 2);
  return status;
}

kv_status create_cancel(World& w, kv_error* error) {
  kv_cancel* made = nullptr;
  return keep(failing([&] { return kv_cancel_create(&made, error); }), made, &w.cancel);
}

}  // namespace

std::vector<Operation> model_operations(const Files& files) {
  const auto load = [&files](World& w) {
    Error e;
    OK(load_file(w, files.model, 0, &e));
  };
  return {
      {"runtime_create", Stage::kNothing, create_runtime},
      {"report_create", Stage::kRuntime, create_report, [](World&) {}, true},
      {"load_backend", Stage::kRuntime, load_backend},
      {"load_file", Stage::kRuntime, [&](World& w, kv_error* e) { return load_file(w, files.model, 0, e); }},
      {"load_bpe_file", Stage::kRuntime, [&](World& w, kv_error* e) { return load_file(w, files.bpe_model, 0, e); }},
      {"load_mapped", Stage::kRuntime,
       [&](World& w, kv_error* e) { return load_file(w, files.model, KV_MODEL_MAP_FILE, e); }},
      {"load_split", Stage::kRuntime, [&](World& w, kv_error* e) { return load_file(w, files.first_piece, 0, e); }},
      {"load_memory", Stage::kRuntime, [&](World& w, kv_error* e) { return load_memory(w, files.bytes, 0, e); }},
      {"load_borrowed", Stage::kRuntime,
       [&](World& w, kv_error* e) { return load_memory(w, files.bytes, KV_MODEL_BORROW_MEMORY, e); }},
      {"load_and_use_file", Stage::kRuntime,
       [](World& w, kv_error* e) { return create_context(w, w.second_model.get(), e); }, load},
      {"builder_create", Stage::kRuntime, create_builder},
      {"builder_add", Stage::kRuntime, [](World& w, kv_error* e) { return add_one(w, "blk.0.attn_v.weight", e); },
       fill_builder},
      {"builder_finish", Stage::kRuntime, finish_builder,
       [](World& w) {
         Error e;
         fill_builder(w);
         OK(add_one(w, "blk.0.attn_v.weight", &e));
       }},
      {"read_model", Stage::kRuntime, read_model, load},
      {"prepare", Stage::kModel,
       [](World& w, kv_error* e) {
         return failing([&] { return kv_model_prepare(w.model.get(), w.device_name.c_str(), nullptr, e); });
       }},
      {"prepare_file", Stage::kRuntime,
       [](World& w, kv_error* e) {
         return failing([&] { return kv_model_prepare(w.second_model.get(), w.device_name.c_str(), nullptr, e); });
       },
       load},
      {"prepare_split", Stage::kRuntime,
       [](World& w, kv_error* e) {
         const kv_status status =
             failing([&] { return kv_model_prepare(w.second_model.get(), w.device_name.c_str(), nullptr, e); });
         if (status == KV_OK) use_model(w);
         return status;
       },
       [&](World& w) {
         Error e;
         OK(load_file(w, files.first_piece, 0, &e));
       }},
      {"context_plan", Stage::kModel, plan_context},
      {"context_create", Stage::kModel, [](World& w, kv_error* e) { return create_context(w, w.model.get(), e); }},
      {"second_context", Stage::kContext, [](World& w, kv_error* e) { return create_context(w, w.model.get(), e); }},
      {"cancel_create", Stage::kNothing, create_cancel},
  };
}

Operation automatic_context() {
  return {"context_create_auto", Stage::kModel, [](World& w, kv_error* e) {
            kv_context* made = nullptr;
            return keep(failing([&] { return kv_context_create(w.model.get(), nullptr, &made, e); }), made,
                        &w.second_context);
          }};
}

}  // namespace kvasir::test
