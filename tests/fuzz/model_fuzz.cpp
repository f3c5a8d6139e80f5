// SPDX-License-Identifier: MIT
//
// A whole model: what kv_model_load_memory accepts must answer every question, tokenize, and run on `ref` or be refused
// with a sentence.
#include <vector>

#include "fuzz/host.h"

namespace {

using namespace kvasir::fuzz;

void ask_metadata(const kv_model* model, uint32_t count) {
  Error e;
  for (uint32_t i = 0; i < count; ++i) {
    kv_metadata pair = sized<kv_metadata>();
    if (judged(kv_model_metadata_at(model, i, &pair, &e), e) != KV_OK) continue;  // a boolean of 2
    const std::string key(pair.key, pair.key_length);
    kv_metadata found = sized<kv_metadata>();
    KV_REQUIRE(kv_model_metadata_find(model, key.c_str(), &found, &e) == KV_OK);
    KV_REQUIRE(found.key == pair.key && found.kind == pair.kind && found.count == pair.count);
    for (const uint64_t index : {uint64_t{0}, pair.count - 1}) {
      (void)judged(kv_model_metadata_element(model, key.c_str(), index, &found, &e), e);
    }
    KV_REQUIRE(kv_model_metadata_element(model, key.c_str(), pair.count, &found, &e) == KV_INVALID_ARGUMENT);
  }
  kv_metadata none = sized<kv_metadata>();
  KV_REQUIRE(kv_model_metadata_at(model, count, &none, &e) == KV_INVALID_ARGUMENT);
}

void ask_tensors(const kv_model* model, const kv_model_info& info) {
  Error e;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < info.tensors; ++i) {
    kv_tensor_info tensor = sized<kv_tensor_info>();
    KV_REQUIRE(kv_model_tensor_at(model, i, &tensor, &e) == KV_OK);
    KV_REQUIRE(tensor.bytes > 0 && tensor.name[0] != '\0');
    bytes += tensor.bytes;
  }
  KV_REQUIRE(bytes == info.tensor_bytes);
}

void tokenize(const kv_tokenizer* tokenizer) {
  constexpr std::string_view kText = "abc a<s><end> 12\xE2\x80\xF0\x9F\x99\x82\n";
  Error e;
  for (const uint32_t flags : {0U, 3U}) {
    int32_t tokens[64];
    size_t count = 0;
    if (judged(kv_tokenize(tokenizer, kText.data(), kText.size(), flags, tokens, 64, &count, &e), e) != KV_OK) continue;
    char text[8192];
    size_t length = 0;
    (void)judged(kv_detokenize(tokenizer, tokens, count, KV_TEXT_SPECIAL, text, sizeof text, &length, &e), e);
    for (size_t i = 0; i < count; ++i) {
      size_t needed = 0;
      (void)judged(kv_token_text(tokenizer, tokens[i], KV_TEXT_SPECIAL, text, 1, &needed, &e), e);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kv_model_options options = sized<kv_model_options>();
  options.flags = KV_MODEL_BORROW_MEMORY;
  kv_model* loaded = nullptr;
  Error e;
  if (size == 0) return 0;
  const kv_status status = judged(kv_model_load_memory(runtime(), data, size, &options, &loaded, &e), e);
  KV_REQUIRE((status == KV_OK) == (loaded != nullptr));
  KV_REQUIRE(status != KV_OUT_OF_MEMORY);  // the file is small, and nothing it says makes it larger
  if (loaded == nullptr) return 0;
  const ModelPtr model(loaded);
  kv_model_info info = sized<kv_model_info>();
  KV_REQUIRE(kv_model_get_info(model.get(), &info, &e) == KV_OK);
  ask_metadata(model.get(), info.metadata);
  ask_tensors(model.get(), info);
  if (const kv_tokenizer* tokenizer = kv_model_tokenizer(model.get())) tokenize(tokenizer);
  run_model(model.get());
  return 0;
}
