// SPDX-License-Identifier: MIT
//
// The API as a state machine: a program of calls with friendly and hostile arguments, within the contract of pointers,
// beside a shadow that knows what every sequence must hold. A call that fails leaves the shadow as it was. At the end
// the next logits of one sequence are those of a fresh context that gets its tokens at once.
#include <map>
#include <vector>

#include "fuzz/host.h"
#include "support/random_model.h"
#include "text/vocabularies.h"

namespace {

using namespace kvasir::fuzz;

constexpr size_t kMostCalls = 32;

// Two layers, 260 tokens (case fixture F7), 500 weights or so.
std::vector<uint8_t> model_file() {
  kvasir::ModelConfig config = kvasir::testing::small_config();
  config.dim = 8;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = config.v_head_dim = 4;
  config.rope.dims = 4;
  config.ffn_dim = 8;
  config.vocab = 260;
  return kvasir::testing::random_gguf(config, KV_TYPE_F32, 5, false, [](kvasir::testing::GgufWriter* writer) {
    const kvasir::Vocabulary v = kvasir::testing::byte_vocabulary();
    writer->string("tokenizer.ggml.model", v.model).strings("tokenizer.ggml.tokens", v.pieces);
    writer->f32s("tokenizer.ggml.scores", v.scores).i32s("tokenizer.ggml.token_type", v.types);
  });
}

kv_model* model() {
  static kv_model* const loaded = [] {
    const std::vector<uint8_t> file = model_file();
    kv_model* out = nullptr;
    Error e;
    KV_REQUIRE(kv_model_load_memory(runtime(), file.data(), file.size(), nullptr, &out, &e) == KV_OK);
    return out;
  }();
  return loaded;
}

class Machine {
 public:
  explicit Machine(Bytes bytes) : bytes_(bytes) { begin(); }
  ~Machine() {
    kv_context_release(context_);
    kv_cancel_release(cancel_);
    kv_sampler_release(sampler_);
    kv_text_stream_release(stream_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void run() {
    for (size_t i = 0; i < kMostCalls && !bytes_.empty(); ++i) {
      call();
      compare();
    }
    kv_cancel_reset(cancel_);
    compare_logits();
  }

 private:
  void begin() {
    const kv_context_options options = small_options();
    KV_REQUIRE(kv_context_create(model(), &options, &context_, &e_) == KV_OK);
    KV_REQUIRE(kv_cancel_create(&cancel_, &e_) == KV_OK);
    shadow_[KV_DEFAULT_SEQUENCE] = {};
  }

  bool ok(kv_status status) { return judged(status, e_) == KV_OK; }

  // A live sequence, mostly.
  kv_sequence sequence() {
    const uint8_t choice = bytes_.u8();
    if (choice >= 240 || shadow_.empty()) return bytes_.number();
    auto at = shadow_.begin();
    std::advance(at, choice % shadow_.size());
    return at->first;
  }
  int32_t token() { return bytes_.below(16) == 0 ? bytes_.i32() : bytes_.u8(); }
  uint64_t position(kv_sequence s) {
    const auto found = shadow_.find(s);
    const uint64_t held = found == shadow_.end() ? 0 : found->second.size();
    return bytes_.below(4) == 0 ? bytes_.number() : bytes_.u8() % (held + 1);
  }

  void call() {
    switch (bytes_.below(16)) {
      case 0:
      case 1:
      case 2: return prefill();
      case 3:
      case 4: return decode();
      case 5: return step();
      case 6: return fork();
      case 7: return truncate();
      case 8: return create_or_release();
      case 9: return look();
      case 10: return trace();
      case 11: return sample();
      case 12: return text();
      case 13: return stream();
      case 14: return other_context();
      default: bytes_.flag() ? kv_cancel_set(cancel_) : kv_cancel_reset(cancel_);
    }
  }

  kv_step_options step_options() {
    kv_step_options o = sized<kv_step_options>();
    o.outputs = bytes_.below(16) == 0 ? bytes_.u32() : bytes_.below(3);
    o.row = [](void*, kv_sequence, uint64_t, const float* row, uint32_t width) {
      KV_REQUIRE(row[0] == row[0] && row[width - 1] == row[width - 1]);
    };
    if (bytes_.below(8) == 0) o.row = nullptr;
    if (bytes_.flag()) o.cancel = cancel_;
    if (bytes_.below(4) == 0) {
      o.into = rows_;
      o.into_floats = bytes_.flag() ? std::size(rows_) : bytes_.below(255);
    }
    o.reserved = bytes_.below(32) == 0 ? 1 : 0;
    return o;
  }

  void appended(kv_sequence s, const std::vector<int32_t>& tokens) {
    std::vector<int32_t>& held = shadow_.at(s);
    held.insert(held.end(), tokens.begin(), tokens.end());
  }

  void prefill() {
    const kv_sequence s = sequence();
    std::vector<int32_t> tokens(bytes_.below(12));
    for (int32_t& t : tokens) t = token();
    tokens.reserve(1);  // a pointer even to nothing
    const kv_step_options o = step_options();
    kv_step_result result = sized<kv_step_result>();
    if (bytes_.below(32) == 0) result.struct_size = bytes_.u32() % uint32_t{sizeof result};
    if (ok(kv_prefill(context_, s, tokens.data(), tokens.size(), &o, &result, &e_))) appended(s, tokens);
  }

  void decode() {
    kv_decode_input inputs[4] = {};
    const uint32_t count = bytes_.below(5);
    for (uint32_t i = 0; i < count; ++i) inputs[i] = {sequence(), token(), bytes_.below(64) == 0 ? 1U : 0U};
    const kv_step_options o = step_options();
    kv_step_result results[4] = {};
    for (kv_step_result& result : results) result = sized<kv_step_result>(), result.status = -1;
    (void)ok(kv_decode_step(context_, inputs, count, &o, results, &e_));
    for (uint32_t i = 0; i < count; ++i) {
      if (results[i].status == KV_OK) appended(inputs[i].sequence, {inputs[i].token});
    }
  }

  // Chunks of different sequences, with embedding rows among them.
  void step() {
    std::vector<int32_t> tokens[2];
    const std::vector<float> rows(8 * size_t{8}, bytes_.real());
    kv_step_input inputs[2] = {};
    for (size_t i = 0; i < 2; ++i) {
      inputs[i].struct_size = sizeof(kv_step_input);
      inputs[i].sequence = sequence();
      tokens[i].resize(1 + bytes_.below(7));
      for (int32_t& t : tokens[i]) t = bytes_.below(4) == 0 ? KV_TOKEN_ROW : token();
      inputs[i].tokens = tokens[i].data();
      inputs[i].rows = bytes_.below(8) == 0 ? nullptr : rows.data();
      inputs[i].count = tokens[i].size();
    }
    const kv_step_options o = step_options();
    kv_step_result results[2] = {sized<kv_step_result>(), sized<kv_step_result>()};
    results[0].status = results[1].status = -1;
    (void)ok(kv_step(context_, inputs, 1 + bytes_.below(2), &o, results, &e_));
    for (size_t i = 0; i < 2; ++i) {
      if (results[i].status != KV_OK) continue;
      appended(inputs[i].sequence, tokens[i]);
      with_rows_ = true;  // the row's values are not in the shadow
    }
  }

  void fork() {
    const kv_sequence s = sequence();
    const uint64_t length = position(s);
    kv_sequence made = UINT64_MAX;
    if (!ok(kv_sequence_fork(context_, s, length, &made, &e_))) {
      KV_REQUIRE(made == UINT64_MAX);
      return;
    }
    KV_REQUIRE(shadow_.count(made) == 0);
    const std::vector<int32_t>& held = shadow_.at(s);
    shadow_[made] = std::vector<int32_t>(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(length));
  }

  void truncate() {
    const kv_sequence s = sequence();
    const uint64_t length = position(s);
    if (ok(kv_sequence_truncate(context_, s, length, &e_))) shadow_.at(s).resize(length);
  }

  void create_or_release() {
    if (bytes_.flag()) {
      kv_sequence made = 0;
      if (ok(kv_sequence_create(context_, &made, &e_))) {
        KV_REQUIRE(shadow_.count(made) == 0);
        shadow_[made] = {};
      }
    } else {
      const kv_sequence s = sequence();
      if (ok(kv_sequence_release(context_, s, &e_))) KV_REQUIRE(shadow_.erase(s) == 1);
    }
  }

  void look() {
    const kv_sequence s = sequence();
    const uint64_t first = position(s);
    const uint64_t count = position(s);
    const uint32_t floats = bytes_.below(255);
    if (ok(kv_cache_read(context_, s, bytes_.below(3), bytes_.below(4), first, count, rows_, floats, &e_))) {
      KV_REQUIRE(first + count <= shadow_.at(s).size() && 4 * count <= floats);
    }
  }

  void trace() {
    const auto on = [](void*, const kv_trace_record* record) {
      KV_REQUIRE(record->data != nullptr && record->name != nullptr);
    };
    KV_REQUIRE(
        ok(kv_context_set_trace(context_, bytes_.flag() ? static_cast<kv_trace_fn>(on) : nullptr, nullptr, &e_)));
  }

  void sample() {
    if (sampler_ == nullptr) {
      kv_sampler_options o = sized<kv_sampler_options>();
      o.temperature = bytes_.real();
      o.top_k = bytes_.u32();
      if (!ok(kv_sampler_create(&o, &sampler_, &e_))) return;
    }
    float logits[16];
    for (float& x : logits) x = bytes_.real();
    kv_sample out = sized<kv_sample>();
    if (ok(kv_sampler_sample(sampler_, logits, 16, &out, &e_))) KV_REQUIRE(out.token >= 0 && out.token < 16);
    (void)ok(kv_sampler_accept(sampler_, token(), &e_));
  }

  // Text in, the same text out; buffers that are too small stay as they are.
  void text() {
    const kv_tokenizer* tokenizer = kv_model_tokenizer(model());
    const std::string text(bytes_.text());
    const uint32_t flags = bytes_.below(16) == 0 ? bytes_.u32() : bytes_.below(2) * KV_TOKENIZE_PARSE_SPECIAL;
    size_t count = 0;
    int32_t canary = -77;
    const kv_status asked = kv_tokenize(tokenizer, text.data(), text.size(), flags, &canary, 0, &count, &e_);
    if (asked != KV_OK && asked != KV_BUFFER_TOO_SMALL) return (void)ok(asked);
    KV_REQUIRE(canary == -77 && count <= text.size() + 2);
    std::vector<int32_t> tokens(count + 1);
    KV_REQUIRE(ok(kv_tokenize(tokenizer, text.data(), text.size(), flags, tokens.data(), count, &count, &e_)));
    std::string back(4 * text.size() + 64, '\0');
    size_t length = 0;
    KV_REQUIRE(
        ok(kv_detokenize(tokenizer, tokens.data(), count, KV_TEXT_SPECIAL, back.data(), back.size(), &length, &e_)));
    if ((flags & KV_TOKENIZE_ADD_SPECIAL) == 0) KV_REQUIRE(back.substr(0, length) == text);
  }

  void stream() {
    if (stream_ == nullptr)
      KV_REQUIRE(ok(kv_text_stream_create(kv_model_tokenizer(model()), bytes_.below(2), &stream_, &e_)));
    const char* text = nullptr;
    size_t length = 0;
    for (uint32_t i = bytes_.below(8); i > 0; --i) {
      const int32_t t = token();
      if (ok(kv_text_stream_push(stream_, t, &text, &length, &e_))) KV_REQUIRE(t >= 0 && t < 260 && length <= 16);
    }
    KV_REQUIRE(ok(kv_text_stream_flush(stream_, &text, &length, &e_)) && length <= 3);
  }

  // A second context of any options, and its plan; it lives for one call.
  void other_context() {
    kv_context_options o = small_options();
    o.flags = bytes_.below(8) == 0 ? bytes_.u32() : bytes_.below(2);
    o.max_tokens = bytes_.below(64);
    o.memory_budget = bytes_.below(4) == 0 ? bytes_.number() : 0;
    o.k_type = bytes_.below(18);
    o.v_type = bytes_.below(18);
    o.page_tokens = bytes_.u32();
    o.threads = bytes_.below(3);
    o.compute_mode = bytes_.below(4);
    o.max_batch_tokens = 1 + bytes_.below(20);
    o.max_sequences = bytes_.below(5);
    o.struct_size += bytes_.below(16) == 0 ? 8 : 0;  // a caller from the future, whose tail is zero
    struct {
      kv_context_options options;
      uint64_t future;
    } longer = {o, 0};
    kv_memory_plan plan = sized<kv_memory_plan>();
    const kv_status planned = judged(kv_context_plan(model(), &longer.options, &plan, &e_), e_);
    kv_context* made = nullptr;
    const kv_status status = judged(kv_context_create(model(), &longer.options, &made, &e_), e_);
    const ContextPtr context(made);
    KV_REQUIRE(planned == status);
    if (status != KV_OK) return;
    int32_t tokens[3] = {1, 2, 3};
    (void)ok(kv_prefill(made, KV_DEFAULT_SEQUENCE, tokens, 3, nullptr, nullptr, &e_));
    kv_context_info info = sized<kv_context_info>();
    KV_REQUIRE(kv_context_get_info(made, &info, &e_) == KV_OK && info.max_tokens == plan.max_tokens);
    if (o.memory_budget != 0) KV_REQUIRE(info.cache_bytes + info.scratch_bytes <= o.memory_budget);
  }

  // Everything that can be seen is what the shadow says.
  void compare() {
    kv_context_info info = sized<kv_context_info>();
    KV_REQUIRE(kv_context_get_info(context_, &info, &e_) == KV_OK);
    KV_REQUIRE(info.sequences == shadow_.size() && info.free_tokens <= info.max_tokens);
    int32_t tokens[32];
    for (const auto& [s, held] : shadow_) {
      uint64_t length = 0;
      KV_REQUIRE(kv_sequence_length(context_, s, &length, &e_) == KV_OK && length == held.size());
      KV_REQUIRE(length <= std::size(tokens));
      KV_REQUIRE(kv_sequence_tokens(context_, s, 0, held.size(), tokens, &e_) == KV_OK);
      KV_REQUIRE(std::equal(held.begin(), held.end(), tokens));
    }
  }

  static std::vector<float> next_logits(kv_context* context, kv_sequence s, const std::vector<int32_t>& tokens) {
    kv_step_result result = sized<kv_step_result>();
    Error e;
    if (kv_prefill(context, s, tokens.data(), tokens.size(), nullptr, &result, &e) != KV_OK) return {};
    return {result.rows, result.rows + result.width};
  }

  void compare_logits() {
    if (shadow_.empty() || with_rows_) return;
    auto [s, tokens] = *shadow_.begin();
    const std::vector<float> cached = next_logits(context_, s, {1});
    if (cached.empty()) return;  // full
    tokens.push_back(1);
    const kv_context_options options = small_options();
    kv_context* made = nullptr;
    KV_REQUIRE(kv_context_create(model(), &options, &made, &e_) == KV_OK);
    const ContextPtr fresh(made);
    const std::vector<float> recomputed = next_logits(made, KV_DEFAULT_SEQUENCE, tokens);
    KV_REQUIRE(cached.size() == recomputed.size());
    KV_REQUIRE(std::memcmp(cached.data(), recomputed.data(), cached.size() * sizeof(float)) == 0);
  }

  Bytes bytes_;
  Error e_;
  kv_context* context_ = nullptr;
  kv_cancel* cancel_ = nullptr;
  kv_sampler* sampler_ = nullptr;
  kv_text_stream* stream_ = nullptr;
  std::map<kv_sequence, std::vector<int32_t>> shadow_;
  bool with_rows_ = false;
  float rows_[1024];  // three rows of logits
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Machine(Bytes(data, size)).run();
  return 0;
}
