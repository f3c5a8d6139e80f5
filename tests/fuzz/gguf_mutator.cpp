// SPDX-License-Identifier: MIT
//
// The changes: lists of edges and of names that mean something, and one function for each kind of thing in a file.
#include "fuzz/gguf_mutator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>

#include "fuzz/gguf_document.h"

namespace kvasir::fuzz {
namespace {

constexpr uint64_t kNumbers[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 5,
                                 7,
                                 8,
                                 16,
                                 31,
                                 32,
                                 33,
                                 64,
                                 100,
                                 127,
                                 128,
                                 255,
                                 256,
                                 1000,
                                 65535,
                                 65536,
                                 0x7FFFFFFF,
                                 0x80000000,
                                 0xFFFFFFFF,
                                 uint64_t{1} << 32,
                                 65537,
                                 0xFFFFFFFE,
                                 1 << 24,
                                 (1 << 24) + 1,
                                 uint64_t{1} << 61,
                                 INT64_MAX,
                                 uint64_t{1} << 63,
                                 UINT64_MAX - 31,
                                 UINT64_MAX};
constexpr double kReals[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             1e-5,
                             0.5,
                             2.0,
                             10000.0,
                             1e-45,
                             1e-38,
                             3.4e38,
                             1e300,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
constexpr std::string_view kWords[] = {"llama",    "qwen2",  "qwen3",     "gpt2",         "linear",   "yarn",   "none",
                                       "longrope", "gpt-2",  "llama-bpe", "qwen2",        "falcon",   "",       "a",
                                       "a b",      "<0x41>", "<end>",     "\xE2\x96\x81", "\xFF\xFE", "default"};
constexpr std::string_view kNames[] = {"general.architecture",
                                       "general.alignment",
                                       "llama.block_count",
                                       "llama.attention.head_count",
                                       "llama.attention.head_count_kv",
                                       "llama.attention.key_length",
                                       "llama.attention.value_length",
                                       "llama.rope.dimension_count",
                                       "llama.rope.freq_base",
                                       "llama.rope.scaling.type",
                                       "llama.rope.scaling.factor",
                                       "llama.rope.scaling.original_context_length",
                                       "llama.expert_count",
                                       "llama.vocab_size",
                                       "split.count",
                                       "split.no",
                                       "tokenizer.ggml.model",
                                       "tokenizer.ggml.pre",
                                       "tokenizer.ggml.tokens",
                                       "tokenizer.ggml.merges",
                                       "tokenizer.ggml.scores",
                                       "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.bos_token_id",
                                       "tokenizer.ggml.add_bos_token",
                                       "output.weight",
                                       "rope_freqs.weight",
                                       "blk.0.attn_q.bias"};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    for (size_t i = 0, changes = 1 + below(4); i < changes && !bytes.empty(); ++i) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0: bytes[at] = static_cast<char>(random_()); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
        case 2: bytes.resize(at); break;
        default: bytes.insert(at, bytes.substr(below(bytes.size()), below(16)));
      }
    }
    return bytes;
  }

  void change(GgufDocument* document) {
    switch (below(8)) {
      case 0: return change_counts(document);
      case 1: return change_list(&document->keys);
      case 2: return change_list(&document->tensors);
      case 3:
      case 4:
        if (!document->tensors.empty()) change_tensor(&document->tensors[below(document->tensors.size())]);
        return;
      default:
        if (!document->keys.empty()) change_key(&document->keys[below(document->keys.size())]);
    }
  }

  size_t below(size_t count) { return random_() % std::max<size_t>(count, 1); }

 private:
  uint64_t number() { return below(8) == 0 ? random_() : kNumbers[below(std::size(kNumbers))]; }
  // Replaces a number, or moves it a little.
  uint64_t other(uint64_t value) { return below(3) == 0 ? value + below(5) - 2 : number(); }

  void change_counts(GgufDocument* document) {
    switch (below(4)) {
      case 0: document->version = static_cast<uint32_t>(other(document->version)); break;
      case 1: document->extra_keys = other(0); break;
      case 2: document->extra_tensors = other(0); break;
      default: document->version = 5 - document->version;  // 2 and 3
    }
  }

  template <class T>
  void change_list(std::vector<T>* list) {
    if (list->empty()) return;
    const size_t at = below(list->size());
    switch (below(4)) {
      case 0: list->erase(list->begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: std::swap((*list)[at], (*list)[below(list->size())]); break;
      case 2: list->push_back((*list)[at]); break;  // a twin
      default:                                      // a twin under another name
        list->push_back((*list)[at]);
        change_name(&list->back().name);
    }
  }

  void change_name(std::string* name) {
    switch (below(5)) {
      case 0: *name = kNames[below(std::size(kNames))]; break;
      case 1: *name = damage(*name); break;
      case 2: name->append(below(400), 'x'); break;
      case 3: name->push_back('\0'); break;
      default: {  // another layer or family
        const size_t digit = name->find_first_of("0123456789");
        if (digit != std::string::npos) (*name)[digit] = static_cast<char>('0' + below(10));
        if (name->starts_with("llama")) name->replace(0, 5, "qwen3");
      }
    }
  }

  void change_tensor(GgufTensor* tensor) {
    switch (below(8)) {
      case 0: change_name(&tensor->name); break;
      case 1: tensor->displaced = below(2) == 0 ? other(0) : 32 * (below(5) - 2); break;
      case 2: tensor->dims.resize(below(6), 1); break;
      case 3: tensor->type = static_cast<uint32_t>(below(2) == 0 ? below(40) : other(tensor->type)); break;
      case 4: std::reverse(tensor->dims.begin(), tensor->dims.end()); break;
      case 5: tensor->data = damage(tensor->data); return;
      case 6: change_values(&tensor->data); return;
      default:
        if (!tensor->dims.empty()) {
          uint64_t& dim = tensor->dims[below(tensor->dims.size())];
          dim = other(dim);
        }
    }
    if (below(2) == 0) tensor->fit_data();
  }

  // A number that no kernel likes, at one place or everywhere.
  void change_values(std::string* data) {
    const auto value = static_cast<float>(kReals[below(std::size(kReals))]);
    if (data->size() < sizeof value) return;
    const size_t places = data->size() / sizeof value;
    const size_t first = below(places);
    const size_t end = below(2) == 0 ? first + 1 : places;
    for (size_t i = first; i < end; ++i) std::memcpy(data->data() + i * sizeof value, &value, sizeof value);
  }

  void change_key(GgufKey* key) {
    switch (below(6)) {
      case 0: change_name(&key->name); break;
      case 1: key->type = static_cast<uint32_t>(below(2) == 0 ? below(14) : number()); break;
      case 2: key->payload = damage(key->payload); break;
      default: change_value(key);
    }
  }

  void change_value(GgufKey* key) {
    if (key->type == 8) {
      key->payload =
          encoded_string(below(2) == 0 ? std::string(kWords[below(std::size(kWords))])
                                       : damage(key->payload.substr(std::min<size_t>(8, key->payload.size()))));
    } else if (key->type == 9) {
      change_array(&key->payload);
    } else {
      change_scalar(key->type, &key->payload);
    }
  }

  static std::string encoded_string(const std::string& text) {
    const auto bytes = static_cast<uint64_t>(text.size());
    return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text;
  }

  void change_scalar(uint32_t type, std::string* payload) {
    const double real = kReals[below(std::size(kReals))];
    if (type == 6 && payload->size() == sizeof(float)) {
      const auto narrow = static_cast<float>(real);
      std::memcpy(payload->data(), &narrow, sizeof narrow);
    } else if (type == 12 && payload->size() == sizeof real) {
      std::memcpy(payload->data(), &real, sizeof real);
    } else {
      uint64_t value = 0;
      std::memcpy(&value, payload->data(), std::min(payload->size(), sizeof value));
      value = other(value);
      std::memcpy(payload->data(), &value, std::min(payload->size(), sizeof value));
    }
  }

  void change_array(std::string* payload) {
    std::vector<std::string> elements = array_elements(*payload);
    if (payload->size() < sizeof(uint32_t) || elements.empty()) return;
    uint32_t type = 0;
    std::memcpy(&type, payload->data(), sizeof type);
    std::string& element = elements[below(elements.size())];
    uint64_t extra = 0;
    switch (below(6)) {
      case 0: elements.resize(below(elements.size())); break;
      case 1: elements.push_back(element); break;
      case 2: std::swap(element, elements[below(elements.size())]); break;
      case 3: type = static_cast<uint32_t>(below(14)); break;
      case 4: extra = other(0); break;
      default:
        if (type == 8) {
          element = encoded_string(below(2) == 0 ? std::string(kWords[below(std::size(kWords))])
                                                 : damage(element.substr(std::min<size_t>(8, element.size()))));
        } else {
          change_scalar(type, &element);
        }
    }
    *payload = array_payload(type, elements.size() + extra, elements);
  }

  std::mt19937 random_;
};

}  // namespace

std::string mutate_gguf(const uint8_t* data, size_t size, uint32_t seed) {
  Mutator mutator(seed);
  GgufDocument document;
  if (mutator.below(10) == 0 || !GgufDocument::parse(data, size, &document)) {
    return mutator.damage(std::string(reinterpret_cast<const char*>(data), size));
  }
  for (size_t i = 0, changes = 1 + mutator.below(3); i < changes; ++i) mutator.change(&document);
  return document.write();
}

}  // namespace kvasir::fuzz
