/* SPDX-License-Identifier: MIT
 *
 * hello: open a model, prefill a prompt, decode greedily, print as it comes.
 *   hello model.gguf "Once upon a time" [device]      device: cpu (default), ref, vulkan, cuda, auto
 */
#include <stdio.h>
#include <string.h>

#include "kvasir/kvasir.h"

static kv_error error = {.struct_size = sizeof error};

static int32_t best_of(const kv_step_result* result) {
  int32_t best = 0;
  for (uint32_t v = 1; v < result->width; v++) {
    if (result->rows[v] > result->rows[best]) best = (int32_t)v;
  }
  return best;
}

static kv_status generate(kv_context* context, const kv_tokenizer* tokenizer, const char* prompt) {
  int32_t tokens[512];
  size_t count = 0;
  kv_status status =
      kv_tokenize(tokenizer, prompt, strlen(prompt), KV_TOKENIZE_ADD_SPECIAL, tokens, 512, &count, &error);
  kv_text_stream* stream = NULL;
  if (!status) status = kv_text_stream_create(tokenizer, 0, &stream, &error);

  kv_step_result result = {.struct_size = sizeof result};
  if (!status) status = kv_prefill(context, KV_DEFAULT_SEQUENCE, tokens, count, NULL, &result, &error);
  if (!status) printf("%s", prompt);
  for (int i = 0; !status && i < 200; i++) {
    const kv_decode_input next = {KV_DEFAULT_SEQUENCE, best_of(&result), 0};
    if (kv_token_ends_generation(tokenizer, next.token)) break;
    const char* text = NULL;
    size_t length = 0;
    status = kv_text_stream_push(stream, next.token, &text, &length, &error);
    if (!status) fwrite(text, 1, length, stdout);
    fflush(stdout);
    if (!status) status = kv_decode_step(context, &next, 1, NULL, &result, &error);
  }
  printf("\n");
  kv_text_stream_release(stream);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: hello model.gguf prompt [device]\n");
    return 2;
  }
  kv_runtime* runtime = NULL;
  kv_model* model = NULL;
  kv_context* context = NULL;
  kv_context_options options = {.struct_size = sizeof options};
  options.device = argc > 3 ? argv[3] : "cpu";

  kv_status status = kv_runtime_create(NULL, &runtime, &error);
  if (!status) status = kv_model_load_file(runtime, argv[1], NULL, &model, &error);
  if (!status) status = kv_context_create(model, &options, &context, &error);
  if (!status) status = generate(context, kv_model_tokenizer(model), argv[2]);
  if (status) fprintf(stderr, "%s: %s\n", kv_status_name(status), error.message);

  kv_context_release(context); /* any order, NULL is fine */
  kv_model_release(model);
  kv_runtime_release(runtime);
  return status ? 1 : 0;
}
