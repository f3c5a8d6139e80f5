// SPDX-License-Identifier: MIT
//
// Operations on tokenizers, text streams and samplers.
#include <cmath>
#include <string_view>

#include "faults/injector.h"
#include "faults/operations.h"

namespace kvasir::test {
namespace {

constexpr std::string_view kText = "abca<s>bABabcab";  // both vocabularies can spell it

std::function<void(World&)> with_model(const std::string& path) {
  return [path](World& w) {
    w.second_model = load_model(w.runtime.get(), path);
    ASSERT_NE(kv_model_tokenizer(w.second_model.get()), nullptr);
  };
}

kv_status tokenize(World& w, kv_error* error) {
  int32_t tokens[64];
  size_t count = 0;
  const uint32_t flags = KV_TOKENIZE_ADD_SPECIAL | KV_TOKENIZE_PARSE_SPECIAL;
  const kv_tokenizer* tokenizer = kv_model_tokenizer(w.second_model.get());
  const kv_status status =
      failing([&] { return kv_tokenize(tokenizer, kText.data(), kText.size(), flags, tokens, 64, &count, error); });
  if (status == KV_OK) w.yield(tokens, count);
  return status;
}

kv_status detokenize(World& w, kv_error* error) {
  const int32_t tokens[] = {1, 8, 3, 9, 4, 7};
  char text[64];
  size_t length = 0;
  const kv_status status = failing([&] {
    return kv_detokenize(kv_model_tokenizer(w.second_model.get()), tokens, 6, KV_TEXT_SPECIAL, text, 64, &length,
                         error);
  });
  if (status == KV_OK) w.yield(text, length);
  return status;
}

kv_status token_text(World& w, kv_error* error) {
  char text[64];
  size_t length = 0;
  kv_tokenizer_info info = sized<kv_tokenizer_info>();
  const kv_tokenizer* tokenizer = kv_model_tokenizer(w.second_model.get());
  if (const kv_status status = failing([&] { return kv_tokenizer_get_info(tokenizer, &info, error); }); status != KV_OK)
    return status;
  const kv_status status = failing([&] { return kv_token_text(tokenizer, 8, 0, text, 64, &length, error); });
  if (status == KV_OK) w.yield(text, length);
  return status;
}

kv_status create_stream(World& w, kv_error* error) {
  kv_text_stream* made = nullptr;
  const kv_status status =
      failing([&] { return kv_text_stream_create(kv_model_tokenizer(w.second_model.get()), 0, &made, error); });
  if (status == KV_OK) w.stream.reset(made);
  return status;
}

kv_status push(World& w, kv_error* error) {
  const char* text = nullptr;
  size_t length = 0;
  const kv_status status = failing([&] { return kv_text_stream_push(w.stream.get(), 8, &text, &length, error); });
  if (status == KV_OK) w.yield(text, length);
  return status;
}

kv_status flush(World& w, kv_error* error) {
  const char* text = nullptr;
  size_t length = 0;
  const kv_status status = failing([&] { return kv_text_stream_flush(w.stream.get(), &text, &length, error); });
  if (status == KV_OK) w.yield(text, length);
  return status;
}

kv_status create_sampler(World& w, kv_error* error) {
  const kv_logit_bias bias[] = {{1, -INFINITY}, {2, 0.5F}};
  kv_sampler_options options = sized<kv_sampler_options>();
  options.temperature = 0.8F;
  options.top_k = 8;
  options.use_top_p = 1;
  options.top_p = 0.9F;
  options.repetition_penalty = 1.2F;
  options.penalty_last = 4;
  options.seed = 7;
  options.bias = bias;
  options.bias_count = 2;
  options.log_probabilities = 1;
  kv_sampler* made = nullptr;
  const kv_status status = failing([&] { return kv_sampler_create(&options, &made, error); });
  if (status == KV_OK) w.sampler.reset(made);
  return status;
}

kv_status sample(World& w, kv_error* error) {
  float logits[16];
  for (int i = 0; i < 16; i++) logits[i] = static_cast<float>(i % 5) * 0.3F;
  kv_candidate top[4];
  kv_sample out = sized<kv_sample>();
  out.top_capacity = 4;
  out.top = top;
  const kv_status status = failing([&] { return kv_sampler_sample(w.sampler.get(), logits, 16, &out, error); });
  if (status == KV_OK) w.yield(&out.token, 1);
  if (status == KV_OK) w.yield(top, out.top_count);
  return status;
}

// Fills the history, so that the failing call is neither the first nor the last one of its kind.
void with_sampler(World& w) {
  Error e;
  OK(create_sampler(w, &e));
  OK(kv_sampler_accept(w.sampler.get(), 3, &e));
}

kv_status accept_many(World& w, kv_error* error) {
  for (int32_t token = 0; token < 9; token++) {
    if (const kv_status status = failing([&] { return kv_sampler_accept(w.sampler.get(), token, error); });
        status != KV_OK)
      return status;
  }
  return KV_OK;
}

}  // namespace

std::vector<Operation> text_operations(const Files& files) {
  const auto stream = [&files](World& w) {
    Error e;
    with_model(files.model)(w);
    OK(create_stream(w, &e));
  };
  return {
      {"tokenize", Stage::kRuntime, tokenize, with_model(files.model)},
      {"tokenize_bpe", Stage::kRuntime, tokenize, with_model(files.bpe_model)},
      {"detokenize", Stage::kRuntime, detokenize, with_model(files.model)},
      {"token_text", Stage::kRuntime, token_text, with_model(files.bpe_model)},
      {"stream_create", Stage::kRuntime, create_stream, with_model(files.model)},
      {"stream_push", Stage::kRuntime, push, stream},
      {"stream_flush", Stage::kRuntime, flush,
       [stream](World& w) {
         Error e;
         stream(w);
         OK(push(w, &e));
       }},
      {"sampler_create", Stage::kNothing, create_sampler},
      {"sampler_sample", Stage::kNothing, sample, with_sampler},
      {"sampler_accept", Stage::kNothing, accept_many, with_sampler},
      {"sampler_reset", Stage::kNothing,
       [](World& w, kv_error* e) { return failing([&] { return kv_sampler_reset(w.sampler.get(), 9, e); }); },
       with_sampler},
  };
}

}  // namespace kvasir::test
