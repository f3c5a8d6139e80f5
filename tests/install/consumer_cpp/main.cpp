// SPDX-License-Identifier: MIT
//
// An application in C++11: the same as the one in C, with a sampler, a text stream, and errors as exceptions of its own.
//   consumer MODEL.gguf
#include <kvasir/kvasir.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

template <typename T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

kv_error error = {sizeof(kv_error), KV_OK, {}};

void check(kv_status status) {
  if (status != KV_OK) throw std::runtime_error(std::string(kv_status_name(status)) + ": " + error.message);
}

std::string backend_path(kv_runtime* runtime) {
  kv_backend_report* made = nullptr;
  check(kv_backend_report_create(runtime, &made, &error));
  const Handle<kv_backend_report> report(made, kv_backend_report_release);
  for (size_t i = 0; i < kv_backend_report_count(made); ++i) {
    kv_backend_entry entry{};
    entry.struct_size = sizeof entry;
    check(kv_backend_report_entry(made, i, &entry, &error));
    if (entry.status == KV_OK && std::string(entry.name) == "cpu") return *entry.path ? entry.path : "built-in";
  }
  return "none";
}

std::string generate(const kv_model* model, kv_context* context, const std::string& prompt) {
  const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
  std::vector<int32_t> tokens(64);
  size_t count = 0;
  check(kv_tokenize(tokenizer, prompt.data(), prompt.size(), KV_TOKENIZE_ADD_SPECIAL, tokens.data(), tokens.size(),
                    &count, &error));
  kv_step_result result{};
  result.struct_size = sizeof result;
  check(kv_prefill(context, KV_DEFAULT_SEQUENCE, tokens.data(), count, nullptr, &result, &error));

  kv_sampler* sampler_made = nullptr;
  check(kv_sampler_create(nullptr, &sampler_made, &error));
  const Handle<kv_sampler> sampler(sampler_made, kv_sampler_release);
  kv_text_stream* stream_made = nullptr;
  check(kv_text_stream_create(tokenizer, 0, &stream_made, &error));
  const Handle<kv_text_stream> stream(stream_made, kv_text_stream_release);

  std::string text;
  for (int i = 0; i < 24; ++i) {
    kv_sample sample{};
    sample.struct_size = sizeof sample;
    check(kv_sampler_sample(sampler.get(), result.rows, result.width, &sample, &error));
    if (kv_token_ends_generation(tokenizer, sample.token)) break;
    const char* piece = nullptr;
    size_t length = 0;
    check(kv_text_stream_push(stream.get(), sample.token, &piece, &length, &error));
    text.append(piece, length);
    const kv_decode_input next = {KV_DEFAULT_SEQUENCE, sample.token, 0};
    check(kv_decode_step(context, &next, 1, nullptr, &result, &error));
  }
  return text;
}

void run(const char* path) {
  const uint32_t version = kv_version();
  std::printf("version %u.%u.%u\n", version >> 16, version >> 8 & 255, version & 255);
  kv_runtime* runtime_made = nullptr;
  check(kv_runtime_create(nullptr, &runtime_made, &error));
  const Handle<kv_runtime> runtime(runtime_made, kv_runtime_release);
  std::printf("backend %s\n", backend_path(runtime.get()).c_str());

  kv_model* model_made = nullptr;
  check(kv_model_load_file(runtime.get(), path, nullptr, &model_made, &error));
  const Handle<kv_model> model(model_made, kv_model_release);
  kv_context_options options{};
  options.struct_size = sizeof options;
  options.device = "cpu";
  kv_context* context_made = nullptr;
  check(kv_context_create(model.get(), &options, &context_made, &error));
  const Handle<kv_context> context(context_made, kv_context_release);
  std::printf("text %s\n", generate(model.get(), context.get(), "Once upon a time").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    run(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
