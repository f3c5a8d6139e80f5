/* SPDX-License-Identifier: MIT
 *
 * A program as somebody wrote it for version 0.1. It is compiled with the headers of every frozen version and with
 * today's, and runs with today's library: the first worked example from a builder, and the bundled model, whose logits
 * must not depend on how the tokens came in.
 *   frozen_consumer PLUGINS MODEL DEVICE */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvasir/kvasir.h"

static kv_error e = {sizeof(kv_error), 0, ""};

static void must(kv_status status, const char* what) {
  if (status == KV_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, kv_status_name(status), e.message);
  exit(1);
}

static kv_context* open_context(kv_model* model, const char* device) {
  kv_context_options options = {0};
  kv_context* context = NULL;
  options.struct_size = sizeof options;
  options.device = device;
  options.max_tokens = 32;
  must(kv_context_create(model, &options, &context, &e), "kv_context_create");
  return context;
}

/* Three tokens, two dimensions: the last row is about (1.8199, 1.5105). */
static void worked_example(kv_runtime* runtime, const char* device) {
  static const float q[] = {1, 0, 0, 1}, k[] = {1, 0, 1, 1}, v[] = {2, 0, 0, 2}, x[] = {1, 0, 0, 1, 1, 1};
  kv_model_config config = {0};
  kv_model_builder* builder = NULL;
  kv_model* model = NULL;
  config.struct_size = sizeof config;
  config.layers = 1;
  config.dim = 2;
  config.heads = 1;
  config.norm = KV_NORM_NONE;
  config.attention_scale = 1;
  config.no_residual = 1;
  config.no_output_projection = 1;
  must(kv_model_builder_create(runtime, &config, &builder, &e), "kv_model_builder_create");
  must(kv_model_builder_add(builder, "blk.0.attn_q.weight", KV_TYPE_F32, 2, 2, q, sizeof q, &e), "q");
  must(kv_model_builder_add(builder, "blk.0.attn_k.weight", KV_TYPE_F32, 2, 2, k, sizeof k, &e), "k");
  must(kv_model_builder_add(builder, "blk.0.attn_v.weight", KV_TYPE_F32, 2, 2, v, sizeof v, &e), "v");
  must(kv_model_builder_finish(builder, &model, &e), "kv_model_builder_finish");
  kv_model_builder_release(builder);

  kv_context* context = open_context(model, device);
  kv_step_input input = {0};
  kv_step_result result = {0};
  input.struct_size = sizeof input;
  input.rows = x;
  input.count = 3;
  result.struct_size = sizeof result;
  must(kv_step(context, &input, 1, NULL, &result, &e), "kv_step");
  if (result.width != 2 || fabsf(result.rows[0] - 1.8199F) > 2e-3F || fabsf(result.rows[1] - 1.5105F) > 2e-3F) {
    fprintf(stderr, "the worked example gives %g %g\n", (double)result.rows[0], (double)result.rows[1]);
    exit(1);
  }
  kv_context_release(context);
  kv_model_release(model);
}

/* Logits after one prefill are those after a prefill and a decode step. */
static void bundled_model(kv_runtime* runtime, const char* path, const char* device) {
  static const int32_t tokens[] = {1, 5, 9, 2};
  kv_decode_input last = {KV_DEFAULT_SEQUENCE, 0, 0};
  kv_step_result result = {0};
  kv_model* model = NULL;
  last.token = tokens[3];
  result.struct_size = sizeof result;
  must(kv_model_load_file(runtime, path, NULL, &model, &e), "kv_model_load_file");
  kv_context* whole = open_context(model, device);
  kv_context* stepped = open_context(model, device);
  must(kv_prefill(whole, KV_DEFAULT_SEQUENCE, tokens, 4, NULL, &result, &e), "kv_prefill");
  const float* expected = result.rows;
  must(kv_prefill(stepped, KV_DEFAULT_SEQUENCE, tokens, 3, NULL, &result, &e), "kv_prefill");
  must(kv_decode_step(stepped, &last, 1, NULL, &result, &e), "kv_decode_step");
  if (result.length != 4 || memcmp(result.rows, expected, result.width * sizeof(float)) != 0) {
    fprintf(stderr, "prefill and decode differ\n");
    exit(1);
  }
  kv_context_release(whole);
  kv_context_release(stepped);
  kv_model_release(model);
}

int main(int argc, char** argv) {
  kv_runtime_options options = {0};
  kv_runtime* runtime = NULL;
  if (argc != 4) return 2;
  if (kv_version() >> 16 != KV_VERSION_MAJOR) return 3;
  options.struct_size = sizeof options;
  options.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
  options.backend_path = argv[1];
  must(kv_runtime_create(&options, &runtime, &e), "kv_runtime_create");
  worked_example(runtime, argv[3]);
  bundled_model(runtime, argv[2], argv[3]);
  kv_runtime_release(runtime);
  printf("built for %d.%d, runs with %u.%u on %s\n", KV_VERSION_MAJOR, KV_VERSION_MINOR, kv_version() >> 16,
         kv_version() >> 8 & 0xff, argv[3]);
  return 0;
}
