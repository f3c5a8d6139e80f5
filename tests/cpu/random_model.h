// SPDX-License-Identifier: MIT
//
// Small transformers with random weights of any weight type, head size, cache types and windows, and a rig that runs
// tokens of several sequences through one on any backend. For tests that compare whole programs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sdk/half.h"
#include "sdk/types.h"
#include "support/backend_harness.h"

#ifdef KVB_STATIC
extern "C" const kvb_api* kv_backend_query_v0_ref(const kvb_host* host, kv_error* error);
extern "C" const kvb_api* kv_backend_query_v0_cpu(const kvb_host* host, kv_error* error);
#endif

namespace kvasir::testing {

inline kvb_query_fn query_of(const char* name) {
#ifdef KVB_STATIC
  return std::strcmp(name, "ref") == 0 ? kv_backend_query_v0_ref : kv_backend_query_v0_cpu;
#else
  const kvb_query_fn query = find_plugin(name);
  if (query == nullptr)
    throw std::runtime_error(std::string("no plugin ") + name + " in the folder KVASIR_TEST_PLUGINS");
  return query;
#endif
}

struct ModelShape {
  uint32_t heads = 4, kv_heads = 2, head_dim = 16;
  uint32_t dim = 64, ffn = 96, vocab = 40;
  uint32_t layers = 2;
  uint32_t window = 0;  // of the odd layers; 0 = one cache group, full
  uint32_t k_type = KV_TYPE_F32, v_type = KV_TYPE_F32;
  uint32_t page_tokens = 256;
  uint32_t weight_type = KV_TYPE_F32;
  uint32_t compute_mode = KV_COMPUTE_EXACT;
  bool traced = false;
  bool shared_scratch = false;
  uint32_t seed = 1;
  Limits limits{64, 64, 4, 1024};
};

inline CacheSpec cache_of(const ModelShape& shape) {
  const kvb_cache_group full{
      shape.k_type, shape.v_type, shape.kv_heads, shape.head_dim, shape.head_dim, 0, shape.page_tokens, 0};
  if (shape.window == 0) return one_group(shape.layers, full);
  kvb_cache_group windowed = full;
  windowed.window = shape.window;
  CacheSpec spec{{full, windowed}, {}};
  for (uint32_t layer = 0; layer < shape.layers; layer++) spec.layer_group.push_back(layer % 2);
  return spec;
}

// Weights of about 1 / sqrt(width), in any type the cpu backend multiplies.
class RandomWeights {
 public:
  explicit RandomWeights(uint32_t seed) : random_(seed) {}

  Tensor matrix(uint32_t type, uint32_t rows, uint32_t width) {
    Tensor tensor{type, 1, rows, width, {}};
    const sdk::TypeFacts& facts = sdk::kTypes[type];
    tensor.bytes.resize(size_t{rows} * width / facts.block * facts.bytes);
    const float unit = 1.0f / std::sqrt(static_cast<float>(width));
    for (size_t at = 0; at < tensor.bytes.size(); at += facts.bytes) fill(type, unit, facts.bytes, &tensor.bytes[at]);
    return tensor;
  }

  std::vector<float> vector(uint32_t width, float middle, float spread) {
    std::vector<float> out(width);
    for (float& x : out) x = middle + spread * normal_(random_);
    return out;
  }

 private:
  void fill(uint32_t type, float unit, uint32_t bytes, unsigned char* block) {
    if (bytes <= 4) {
      const float x = unit * normal_(random_);
      const uint16_t bits16 = type == KV_TYPE_F16 ? sdk::f16_from_f32(x) : sdk::bf16_from_f32(x);
      std::memcpy(block, type == KV_TYPE_F32 ? static_cast<const void*>(&x) : &bits16, bytes);
      return;
    }
    for (uint32_t i = 0; i < bytes; i++) block[i] = static_cast<unsigned char>(random_());
    // Scales so that codes of average size give values of average size.
    if (type == KV_TYPE_Q8_0) half(unit / 73, block);
    if (type == KV_TYPE_Q4_0) half(unit / 4.6f, block);
    if (type == KV_TYPE_Q4_K) half(unit / 150, block), half(unit * 7.5f / 150, block + 2);
    if (type == KV_TYPE_Q6_K) half(unit / 1300, block + bytes - 2);
  }
  static void half(float x, unsigned char* to) {
    const uint16_t bits16 = sdk::f16_from_f32(x);
    std::memcpy(to, &bits16, 2);
  }

  std::mt19937 random_;
  std::normal_distribution<float> normal_{0, 1};
};

// Places the activations anew so that values which live at different times share bytes, as the runtime's plan does.
inline void share_scratch(ProgramBuilder& builder) {
  struct Life {
    size_t first, last;
  };
  std::vector<Life> lives(builder.values.size(), {SIZE_MAX, 0});
  for (size_t i = 0; i < builder.ops.size(); i++) {
    for (const uint32_t value : builder.ops[i].in)
      if (value != KVB_NONE) lives[value].last = i;
    for (const uint32_t value : builder.ops[i].out)
      if (value != KVB_NONE) lives[value] = {std::min(lives[value].first, i), std::max(lives[value].last, i)};
  }
  builder.scratch_bytes = 0;
  std::vector<size_t> placed;
  for (size_t v = 0; v < builder.values.size(); v++) {
    kvb_value& value = builder.values[v];
    if (value.kind != KVB_VALUE_SCRATCH) continue;
    const auto bytes_of = [&](const kvb_value& of) {
      const uint64_t rows = of.rows == KVB_ROWS_TOKENS ? builder.limits.tokens : builder.limits.outputs;
      return (rows * of.width * 4 + 63) / 64 * 64;
    };
    // The lowest place where no value that is alive at the same time lies.
    value.place = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const size_t other : placed) {
        const kvb_value& taken = builder.values[other];
        const bool together = lives[v].first <= lives[other].last && lives[other].first <= lives[v].last;
        const bool overlap = value.place < taken.place + bytes_of(taken) && taken.place < value.place + bytes_of(value);
        if (!together || !overlap) continue;
        value.place = taken.place + bytes_of(taken);
        moved = true;
      }
    }
    placed.push_back(v);
    builder.scratch_bytes = std::max(builder.scratch_bytes, value.place + bytes_of(value));
  }
}

// Norms, rotary positions, grouped heads, biases on q and k, gated FFN, tied output head; groups marked as the runtime
// marks them.
class RandomModel {
 public:
  explicit RandomModel(const ModelShape& shape) : shape_(shape), weights_(shape.seed), b_(shape.limits) {
    b_.compute_mode = shape.compute_mode;
    b_.flags = shape.traced ? uint32_t{KVB_PROGRAM_TRACE} : 0;
  }

  ProgramBuilder build() {
    std::vector<double> frequency;
    for (uint32_t i = 0; i < shape_.head_dim / 2; i++) frequency.push_back(std::pow(0.7, i));
    rope_ = b_.rope(KVB_ROPE_HALVES, 0, 1.0f, frequency);
    const uint32_t table = b_.weight(weights_.matrix(shape_.weight_type, shape_.vocab, shape_.dim));
    const uint32_t x = b_.tokens(shape_.dim);
    b_.op(KVB_OP_EMBED, {table}, {x}, {bits(4.0f)});
    for (uint32_t layer = 0; layer < shape_.layers; layer++) add_layer(x, layer);
    const uint32_t picked = b_.selected(shape_.dim);
    mark(b_.op(KVB_OP_SELECT_ROWS, {x}, {picked}), KVB_GROUP_LOGITS, true);
    mark(b_.op(KVB_OP_RMS_NORM, {picked, norm_weight(shape_.dim)}, {picked}, {bits(1e-5f)}), KVB_GROUP_LOGITS);
    mark(b_.op(KVB_OP_LINEAR, {picked, table}, {b_.output(shape_.vocab)}), KVB_GROUP_LOGITS);
    if (shape_.shared_scratch) share_scratch(b_);
    return std::move(b_);
  }

 private:
  void mark(kvb_op& op, uint16_t group, bool begin = false) {
    op.group = group;
    op.layer = layer_;
    op.flags = begin ? KVB_OP_FLAG_GROUP_BEGIN : 0;
  }
  uint32_t norm_weight(uint32_t width) { return b_.vector(weights_.vector(width, 1.0f, 0.1f)); }
  uint32_t linear(uint32_t x, uint32_t in, uint32_t out, uint16_t group, bool begin = false, bool bias = false) {
    const uint32_t y = b_.tokens(out), w = b_.weight(weights_.matrix(shape_.weight_type, out, in));
    const uint32_t added = bias ? b_.vector(weights_.vector(out, 0, 0.1f)) : KVB_NONE;
    mark(b_.op(KVB_OP_LINEAR, {x, w, added}, {y}), group, begin);
    return y;
  }

  void add_layer(uint32_t x, uint32_t layer) {
    layer_ = static_cast<uint16_t>(layer);
    const uint32_t q_width = shape_.heads * shape_.head_dim, kv_width = shape_.kv_heads * shape_.head_dim;
    const uint32_t h = b_.tokens(shape_.dim);
    mark(b_.op(KVB_OP_RMS_NORM, {x, norm_weight(shape_.dim)}, {h}, {bits(1e-5f)}), KVB_GROUP_NORM_QKV, true);
    const uint32_t q = linear(h, shape_.dim, q_width, KVB_GROUP_NORM_QKV, false, true);
    const uint32_t k = linear(h, shape_.dim, kv_width, KVB_GROUP_NORM_QKV, false, true);
    const uint32_t v = linear(h, shape_.dim, kv_width, KVB_GROUP_NORM_QKV);
    const uint32_t k_norm = norm_weight(shape_.head_dim);
    mark(b_.op(KVB_OP_RMS_NORM, {k, k_norm}, {k}, {bits(1e-5f), shape_.head_dim}), KVB_GROUP_ROPE_STORE, true);
    mark(b_.op(KVB_OP_ROPE, {q}, {q}, {shape_.heads, shape_.head_dim, rope_}), KVB_GROUP_ROPE_STORE);
    mark(b_.op(KVB_OP_ROPE, {k}, {k}, {shape_.kv_heads, shape_.head_dim, rope_}), KVB_GROUP_ROPE_STORE);
    mark(b_.op(KVB_OP_KV_STORE, {k, v}, {}, {layer}), KVB_GROUP_ROPE_STORE);
    const uint32_t y = b_.tokens(q_width);
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    mark(b_.op(KVB_OP_ATTENTION, {q}, {y}, {layer, shape_.heads, bits(scale), 0}), KVB_GROUP_ATTENTION, true);
    const uint32_t o = linear(y, q_width, shape_.dim, KVB_GROUP_ATTENTION);
    mark(b_.op(KVB_OP_ADD, {x, o}, {x}), KVB_GROUP_ATTENTION);
    mark(b_.op(KVB_OP_RMS_NORM, {x, norm_weight(shape_.dim)}, {h}, {bits(1e-5f)}), KVB_GROUP_NORM_FFN, true);
    const uint32_t gate = linear(h, shape_.dim, shape_.ffn, KVB_GROUP_NORM_FFN);
    const uint32_t up = linear(h, shape_.dim, shape_.ffn, KVB_GROUP_NORM_FFN);
    mark(b_.op(KVB_OP_GLU, {gate, up}, {gate}, {KVB_ACT_SILU}), KVB_GROUP_NORM_FFN);
    const uint32_t down = linear(gate, shape_.ffn, shape_.dim, KVB_GROUP_DOWN, true);
    mark(b_.op(KVB_OP_ADD, {down, x}, {x}), KVB_GROUP_DOWN);
  }

  ModelShape shape_;
  RandomWeights weights_;
  ProgramBuilder b_;
  uint32_t rope_ = 0;
  uint16_t layer_ = 0;
};

// An executor that runs bodies one after another, last one first, on the calling thread.
inline void serial_executor(void* user, uint32_t count, kv_parallel_body_fn body, void* arg) {
  if (user != nullptr) ++*static_cast<uint64_t*>(user);
  for (uint32_t i = count; i-- > 0;) body(arg, i);
}

// An executor with a thread for every body.
inline void threaded_executor(void*, uint32_t count, kv_parallel_body_fn body, void* arg) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; i++) threads.emplace_back([=] { body(arg, i); });
  for (std::thread& thread : threads) thread.join();
}

struct RigOptions {
  const char* backend = "cpu";
  const char* variant = nullptr;
  uint32_t threads = 0;
  kv_parallel_for_fn executor = nullptr;
};

// What a sequence gets in one step.
struct Append {
  uint32_t sequence;
  std::vector<int32_t> tokens;
};

class Rig {
 public:
  explicit Rig(const ModelShape& shape, const RigOptions& options = {})
      : shape_(shape),
        host_(options.executor),
        device_(query_of(options.backend), host_, options.variant),
        queue_(device_.queue(options.threads)),
        spec_(cache_of(shape)),
        program_(device_, RandomModel(shape).build(), spec_),
        cache_(make_cache(device_, queue_.get(), spec_, std::vector<uint32_t>(spec_.groups.size(), page_count()))),
        sequences_(shape.limits.sequences, TestSequence{0, std::vector<std::vector<uint32_t>>(spec_.groups.size())}) {
    for (uint32_t page = 0; page < page_count(); page++) free_.push_back(page);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(shape.seed));
  }

  // Logits of the last token of each append, or of all tokens.
  std::vector<float> run(const std::vector<Append>& appends, bool all = false) {
    StepData step;
    fill(step, appends, all);
    return run_step(device_, queue_.get(), program_, cache_.get(), step);
  }
  std::vector<float> run(uint32_t sequence, const std::vector<int32_t>& tokens, bool all = false) {
    return run({{sequence, tokens}}, all);
  }
  void fill(StepData& step, const std::vector<Append>& appends, bool all = false) {
    for (const Append& append : appends) {
      TestSequence& sequence = sequences_[append.sequence];
      reserve(sequence, sequence.length + static_cast<uint32_t>(append.tokens.size()));
      step.append(sequence, append.tokens, all);
    }
  }
  void truncate(uint32_t sequence, uint32_t length) { sequences_[sequence].length = length; }

  void poison_all() {
    kv_error error{};
    for (uint32_t group = 0; group < spec_.groups.size(); group++)
      for (uint32_t page = 0; page < page_count(); page++)
        expect_ok(device_.api->cache_poison_page(queue_.get(), cache_.get(), group, page, &error), error, "poison");
  }

  uint32_t page_count() const {
    return shape_.limits.sequences * ((shape_.limits.length + shape_.page_tokens - 1) / shape_.page_tokens) + 1;
  }
  TestHost& host() { return host_; }
  const TestDevice& device() const { return device_; }
  kvb_queue* queue() const { return queue_.get(); }
  kvb_cache* cache() const { return cache_.get(); }
  const TestProgram& program() const { return program_; }
  const CacheSpec& spec() const { return spec_; }
  TestSequence& sequence(uint32_t index) { return sequences_[index]; }

 private:
  struct ExecutorHost : TestHost {
    explicit ExecutorHost(kv_parallel_for_fn executor) { table.parallel_for = executor; }
  };

  void reserve(TestSequence& sequence, uint32_t length) {
    while (sequence.pages[0].size() * shape_.page_tokens < length) {
      if (free_.empty()) throw std::runtime_error("the rig has no page left");
      for (auto& pages : sequence.pages) pages.push_back(free_.back());
      free_.pop_back();
    }
  }

  ModelShape shape_;
  ExecutorHost host_;
  TestDevice device_;
  Owned<kvb_queue> queue_;
  CacheSpec spec_;
  TestProgram program_;
  Owned<kvb_cache> cache_;
  std::vector<TestSequence> sequences_;
  std::vector<uint32_t> free_;
};

inline std::vector<int32_t> random_tokens(uint32_t count, uint32_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab);
  return tokens;
}

// Whether two results have the same bits.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace kvasir::testing
