// SPDX-License-Identifier: MIT
//
// Fuzzes everything a host does with a GGUF file before it runs the model: parse, metadata as text, configuration,
// vocabulary, shapes, data. Any status is fine; crashes, leaks and large memory are not.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/convert.h"
#include "model/gguf.h"
#include "model/tensors.h"
#include "model/vocabulary.h"
#include "text/vocabulary.h"

namespace {

using namespace kvasir;

void read_metadata(const Gguf& gguf) {
  for (size_t i = 0; i < gguf.metadata_count(); ++i) {
    const MetadataValue value = gguf.metadata(i);
    if (!gguf.find(value.key)) __builtin_trap();
    (void)value.text();
    std::vector<std::string_view> strings;
    std::vector<float> reals;
    std::vector<uint32_t> numbers;
    (void)value.as_strings(&strings).ok();
    (void)value.as_f32s(&reals).ok();
    (void)value.as_u32s(&numbers).ok();
    MetadataValue last;
    if (value.element_at(value.count - 1, &last).ok()) (void)last.text();
  }
  Vocabulary vocabulary;
  bool present = false;
  (void)vocabulary_from_gguf(gguf, &vocabulary, &present).ok();
}

// What the parser let through must be readable to its last byte.
void read_tensors(const WeightSource& weights) {
  std::vector<uint8_t> data;
  float block[256];
  for (size_t i = 0; i < weights.count(); ++i) {
    const TensorInfo& info = weights.info(i);
    if (weights.find(info.name) != i) __builtin_trap();
    data.resize(info.bytes);
    if (!weights.read(i, 0, data.data(), data.size()).ok()) __builtin_trap();
    const TypeInfo& type = *type_info(info.type);
    dequantize(info.type, data.data() + data.size() - type.block_bytes, type.block_values, block);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::shared_ptr<const ByteSource> source;
  std::shared_ptr<const Gguf> gguf;
  if (!make_memory_source({data, size}, MemoryOwnership::borrow, &source).ok()) __builtin_trap();
  if (!parse_gguf({source}, &gguf).ok()) return 0;
  read_metadata(*gguf);
  std::shared_ptr<const WeightSource> weights;
  if (!make_gguf_weights(gguf, &weights).ok()) __builtin_trap();
  read_tensors(*weights);
  ModelConfig config;
  if (config_from_gguf(*gguf, &config).ok()) (void)check_tensors(config, *weights).ok();
  return 0;
}
