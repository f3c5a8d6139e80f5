/* SPDX-License-Identifier: MIT
 *
 * Options from flat arguments, and the trampolines from the library's callbacks to the exported Go functions.
 */
#include "bridge.h"

#include "_cgo_export.h"

static void on_log(void* user, int32_t level, const char* text, size_t length) {
  kvgoLog((uintptr_t)user, level, (char*)text, length);
}
static void on_destroyed(void* user) { kvgoDestroyed((uintptr_t)user); }
static void on_progress(void* user, uint64_t done, uint64_t total) { kvgoProgress((uintptr_t)user, done, total); }
static void on_row(void* user, kv_sequence sequence, uint64_t position, const float* row, uint32_t width) {
  kvgoRow((uintptr_t)user, sequence, position, (float*)row, width);
}

kv_status kvgo_runtime_create(uint32_t flags, const char* path, uintptr_t log, kv_runtime** out, kv_error* error) {
  kv_runtime_options options = {.struct_size = sizeof options, .flags = flags, .backend_path = path};
  if (log != 0) {
    options.log = on_log;
    options.log_user = (void*)log;
    options.destroyed = on_destroyed;
    options.destroyed_user = (void*)log;
  }
  return kv_runtime_create(&options, out, error);
}

kv_status kvgo_load_file(kv_runtime* runtime, const char* path, kv_cancel* cancel, uintptr_t progress, kv_model** out,
                         kv_error* error) {
  kv_model_options options = {.struct_size = sizeof options, .cancel = cancel};
  if (progress != 0) {
    options.progress = on_progress;
    options.progress_user = (void*)progress;
  }
  return kv_model_load_file(runtime, path, &options, out, error);
}

static kv_step_options step_options(kvgo_step step, kv_cancel* cancel, float* into, uint64_t floats) {
  kv_step_options options = {.struct_size = sizeof options, .outputs = step.outputs, .cancel = cancel};
  options.keep_chunks = step.keep_chunks;
  if (step.progress != 0) {
    options.progress = on_progress;
    options.progress_user = (void*)step.progress;
  }
  if (step.row != 0) {
    options.row = on_row;
    options.row_user = (void*)step.row;
  }
  options.into = into;
  options.into_floats = floats;
  return options;
}

kv_status kvgo_prefill(kv_context* context, kv_sequence sequence, const int32_t* tokens, size_t count, kvgo_step step,
                       kv_cancel* cancel, float* into, uint64_t floats, kv_step_result* result, kv_error* error) {
  const kv_step_options options = step_options(step, cancel, into, floats);
  return kv_prefill(context, sequence, tokens, count, &options, result, error);
}

kv_status kvgo_decode(kv_context* context, const kv_decode_input* inputs, size_t count, kvgo_step step,
                      kv_cancel* cancel, float* into, uint64_t floats, kv_step_result* results, kv_error* error) {
  const kv_step_options options = step_options(step, cancel, into, floats);
  return kv_decode_step(context, inputs, count, &options, results, error);
}

kv_status kvgo_sampler_create(float temperature, uint32_t top_k, int32_t use_top_p, float top_p, float min_p,
                              uint64_t seed, const kv_logit_bias* bias, size_t bias_count, kv_sampler** out,
                              kv_error* error) {
  kv_sampler_options options = {.struct_size = sizeof options, .temperature = temperature, .top_k = top_k};
  options.use_top_p = use_top_p != 0;
  options.top_p = top_p;
  options.min_p = min_p;
  options.seed = seed;
  options.bias = bias;
  options.bias_count = bias_count;
  return kv_sampler_create(&options, out, error);
}
