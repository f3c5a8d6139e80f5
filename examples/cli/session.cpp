// SPDX-License-Identifier: MIT
//
// Opening things in order: runtime, model, context.
#include "session.h"

#include "progress.h"

namespace kvasir::cli {

RuntimePtr open_runtime() { return make<RuntimePtr>(kv_runtime_create, nullptr); }

ModelPtr open_model(kv_runtime* runtime, const std::string& path, const kv_cancel* cancel) {
  Progress progress("opening");
  kv_model_options options = sized<kv_model_options>();
  options.progress = progress.callback();
  options.progress_user = progress.user();
  options.cancel = cancel;
  return make<ModelPtr>(kv_model_load_file, runtime, path.c_str(), &options);
}

ContextPtr open_context(kv_model* model, kv_context_options options, const kv_cancel* cancel) {
  Progress progress("loading weights");
  kv_model_options load = sized<kv_model_options>();
  load.progress = progress.callback();
  load.progress_user = progress.user();
  load.cancel = cancel;
  options.load = &load;
  return make<ContextPtr>(kv_context_create, model, &options);
}

const kv_tokenizer* tokenizer_of(const kv_model* model) {
  const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
  if (tokenizer == nullptr) throw Failure(KV_UNSUPPORTED, "the model's file has no tokenizer");
  return tokenizer;
}

Session::Session(const std::string& path, const DeviceFlags& flags, const kv_cancel* cancel)
    : runtime(open_runtime()),
      model(open_model(runtime.get(), path, cancel)),
      context(open_context(model.get(), flags.context_options(), cancel)) {}

std::string describe_context(const kv_context* context) {
  const auto info = get<kv_context_info>(kv_context_get_info, context);
  std::string text = info.device;
  if (info.variant[0] != '\0') text += std::string(" (") + info.variant + ")";
  text += info.compute_mode == KV_COMPUTE_FAST ? ", fast" : ", exact";
  return text + ", keys " + cache_type_name(info.k_type) + ", values " + cache_type_name(info.v_type);
}

}  // namespace kvasir::cli
