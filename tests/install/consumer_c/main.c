/* SPDX-License-Identifier: MIT
 *
 * An application in C: opens a model, prefills, decodes on the cpu backend and prints where the backend came from. C99.
 *   consumer MODEL.gguf
 */
#include <kvasir/kvasir.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what, kv_status status, const kv_error* error) {
  if (status == KV_OK) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, kv_status_name(status), error->message);
  return 1;
}

static int print_backend(kv_runtime* runtime, kv_error* error) {
  kv_backend_report* report = NULL;
  size_t i;
  if (failed("report", kv_backend_report_create(runtime, &report, error), error)) return 1;
  for (i = 0; i < kv_backend_report_count(report); i++) {
    kv_backend_entry entry = {sizeof entry};
    if (failed("entry", kv_backend_report_entry(report, i, &entry, error), error)) break;
    if (entry.status == KV_OK && strcmp(entry.name, "cpu") == 0) {
      printf("backend %s\n", entry.path[0] ? entry.path : "built-in");
    }
  }
  kv_backend_report_release(report);
  return 0;
}

static int print_text(const kv_model* model, kv_context* context, kv_error* error) {
  const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
  const char* prompt = "Once upon a time";
  int32_t tokens[64];
  size_t count = 0;
  int i;
  kv_step_result result = {sizeof result};
  if (failed("tokenize",
             kv_tokenize(tokenizer, prompt, strlen(prompt), KV_TOKENIZE_ADD_SPECIAL, tokens, 64, &count, error),
             error) ||
      failed("prefill", kv_prefill(context, KV_DEFAULT_SEQUENCE, tokens, count, NULL, &result, error), error)) {
    return 1;
  }
  printf("text ");
  for (i = 0; i < 24; i++) {
    kv_decode_input next = {KV_DEFAULT_SEQUENCE, 0, 0};
    char text[64];
    size_t length = 0;
    uint32_t v;
    for (v = 1; v < result.width; v++) {
      if (result.rows[v] > result.rows[next.token]) next.token = (int32_t)v;
    }
    if (kv_token_ends_generation(tokenizer, next.token)) break;
    if (failed("text", kv_token_text(tokenizer, next.token, 0, text, sizeof text, &length, error), error)) return 1;
    printf("%.*s", (int)length, text);
    if (failed("decode", kv_decode_step(context, &next, 1, NULL, &result, error), error)) return 1;
  }
  printf("\n");
  return 0;
}

int main(int argc, char** argv) {
  kv_error error = {sizeof error};
  kv_runtime* runtime = NULL;
  kv_model* model = NULL;
  kv_context* context = NULL;
  kv_context_options options = {sizeof options};
  uint32_t version = kv_version();
  int bad;
  if (argc != 2) return 2;
  options.device = "cpu";

  printf("version %u.%u.%u\n", version >> 16, version >> 8 & 255, version & 255);
  bad = failed("runtime", kv_runtime_create(NULL, &runtime, &error), &error) || print_backend(runtime, &error) ||
        failed("model", kv_model_load_file(runtime, argv[1], NULL, &model, &error), &error) ||
        failed("context", kv_context_create(model, &options, &context, &error), &error) ||
        print_text(model, context, &error);
  kv_context_release(context);
  kv_model_release(model);
  kv_runtime_release(runtime);
  return bad;
}
