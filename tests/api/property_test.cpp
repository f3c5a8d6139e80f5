// SPDX-License-Identifier: MIT
//
// Promise 3 as a property: logits have the same bits however the tokens got into the cache. Each run draws a model shape,
// weight type, cache types, compute mode and variant, takes one long prefill on its own as the reference, and compares it
// bit for bit with a random route: chunks, single steps, other sequences beside it, threads, page size, forks, truncates.
#include <rapidcheck.h>

#include <cstring>

#include "support/random_model.h"
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

struct Setup {
  std::string device, variant;
  uint32_t k_type = 0, v_type = 0, compute = 0;

  kv_context_options options(uint32_t threads, uint32_t page_tokens, uint32_t batch) const {
    kv_context_options o = sized<kv_context_options>();
    o.device = device.c_str();
    o.variant = variant.empty() ? nullptr : variant.c_str();
    o.k_type = k_type;
    o.v_type = v_type;
    o.compute_mode = compute;
    o.threads = threads;
    o.page_tokens = page_tokens;
    o.max_batch_tokens = batch;
    o.max_tokens = 4096;
    o.flags = KV_CONTEXT_POISON;
    return o;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Appends tokens [from, to) of `tokens` in random pieces, sometimes beside other sequences in the same step.
std::vector<float> append_randomly(kv_context* context, kv_sequence sequence, const std::vector<int32_t>& tokens,
                                   size_t from, size_t to, std::vector<kv_sequence>* others) {
  std::vector<float> last;
  Error e;
  while (from < to) {
    const auto count = *rc::gen::inRange<size_t>(1, std::min<size_t>(to - from, 40) + 1);
    const bool company = *rc::gen::inRange(0, 3) == 0;
    std::vector<kv_step_input> inputs;
    std::vector<int32_t> noise = random_tokens(9, 64, static_cast<uint32_t>(from));
    kv_step_input mine = sized<kv_step_input>();
    mine.sequence = sequence;
    mine.tokens = tokens.data() + from;
    mine.count = count;
    if (company) {
      while (others->size() < 3) {
        kv_sequence other = 0;
        RC_ASSERT(kv_sequence_create(context, &other, &e) == KV_OK);
        others->push_back(other);
      }
      const auto place = *rc::gen::inRange<size_t>(0, 4);
      for (size_t i = 0; i < others->size() + 1; i++) {
        if (i == place) inputs.push_back(mine);
        if (i == others->size()) break;
        kv_step_input other = sized<kv_step_input>();
        other.sequence = (*others)[i];
        other.tokens = noise.data() + i;
        other.count = *rc::gen::inRange<uint64_t>(1, 6);
        inputs.push_back(other);
      }
    } else {
      inputs.push_back(mine);
    }
    std::vector<kv_step_result> results(inputs.size(), sized<kv_step_result>());
    const kv_status status = kv_step(context, inputs.data(), inputs.size(), nullptr, results.data(), &e);
    if (status != KV_OK) RC_FAIL(std::string(e.message));
    for (size_t i = 0; i < inputs.size(); i++) {
      if (inputs[i].sequence == sequence) last.assign(results[i].rows, results[i].rows + results[i].width);
    }
    from += count;
  }
  return last;
}

// A detour that must leave no trace: wrong tokens appended and truncated away, or the work continued on a fork.
void detour(kv_context* context, kv_sequence* sequence, const std::vector<int32_t>& tokens, size_t held) {
  Error e;
  switch (*rc::gen::inRange(0, 3)) {
    case 0: {
      const std::vector<int32_t> wrong = random_tokens(*rc::gen::inRange<size_t>(1, 20), 64, 99);
      RC_ASSERT(kv_prefill(context, *sequence, wrong.data(), wrong.size(), nullptr, nullptr, &e) == KV_OK);
      RC_ASSERT(kv_sequence_truncate(context, *sequence, held, &e) == KV_OK);
      break;
    }
    case 1: {
      kv_sequence fork = 0;
      RC_ASSERT(kv_sequence_fork(context, *sequence, held, &fork, &e) == KV_OK);
      // The parent goes on differently, and sometimes dies first.
      const int32_t other = (tokens[held % tokens.size()] + 1) % 64;
      RC_ASSERT(kv_prefill(context, *sequence, &other, 1, nullptr, nullptr, &e) == KV_OK);
      if (*rc::gen::inRange(0, 2) == 0) RC_ASSERT(kv_sequence_release(context, *sequence, &e) == KV_OK);
      *sequence = fork;
      break;
    }
    default: break;
  }
}

void check(kv_model* model, const Setup& setup, size_t length) {
  const std::vector<int32_t> tokens = random_tokens(length, 64, *rc::gen::inRange<uint32_t>(0, 1000));
  const kv_context_options plain = setup.options(1, 0, 0);
  const ContextPtr reference = make_context(model, plain);
  RC_ASSERT(static_cast<bool>(reference));
  const std::vector<float> want = prefill(reference.get(), KV_DEFAULT_SEQUENCE, tokens);

  const auto threads = *rc::gen::element<uint32_t>(1, 2, 3, 5);
  const auto page = *rc::gen::element<uint32_t>(1, 4, 16, 100, 256, 512);
  const auto batch = *rc::gen::element<uint32_t>(1, 3, 7, 16, 64, 512);
  RC_TAG(setup.device);
  const ContextPtr context = make_context(model, setup.options(threads, page, batch));
  RC_ASSERT(static_cast<bool>(context));
  kv_sequence sequence = KV_DEFAULT_SEQUENCE;
  std::vector<kv_sequence> others;
  const size_t middle = *rc::gen::inRange<size_t>(1, length);
  append_randomly(context.get(), sequence, tokens, 0, middle, &others);
  detour(context.get(), &sequence, tokens, middle);
  const std::vector<float> got = append_randomly(context.get(), sequence, tokens, middle, length, &others);
  RC_ASSERT(same_bits(got, want));
}

Setup draw_setup(const std::string& device) {
  Setup setup;
  setup.device = device;
  const auto type = [] { return *rc::gen::element<uint32_t>(KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0); };
  setup.k_type = type();
  setup.v_type = type();
  setup.compute = *rc::gen::element<uint32_t>(KV_COMPUTE_EXACT, KV_COMPUTE_FAST);
  if (device == "cpu") setup.variant = *rc::gen::element<std::string>("", "scalar");
  return setup;
}

class Promise3 : public ::testing::TestWithParam<std::string> {
 protected:
  RuntimePtr runtime_ = make_runtime();
};

TEST_P(Promise3, RandomDecoders) {
  const std::string device = GetParam();
  EXPECT_TRUE(rc::check("same bits on every route", [&] {
    kv_model_config config = small_config();
    config.context_length = 4096;
    config.head_dim = *rc::gen::element<uint32_t>(8, 20, 32);
    config.kv_heads = *rc::gen::element<uint32_t>(1, 2, 4);
    config.rope = *rc::gen::element<uint32_t>(KV_ROPE_NONE, KV_ROPE_ADJACENT, KV_ROPE_HALVES);
    config.rope_dims = config.rope == KV_ROPE_NONE ? 0 : config.head_dim / 2;
    config.window = *rc::gen::element<uint32_t>(0, 0, 5, 16);
    const ModelPtr model = random_model(runtime_.get(), config, *rc::gen::inRange<uint32_t>(0, 1000));
    RC_ASSERT(static_cast<bool>(model));
    check(model.get(), draw_setup(device), *rc::gen::inRange<size_t>(2, device == "cpu" ? 400 : 90));
  }));
}

TEST_P(Promise3, EveryWeightType) {
  const std::string device = GetParam();
  for (const uint32_t type : {KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0, KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K}) {
    ModelConfig config = testing::small_config();
    config.dim = config.ffn_dim = 256;  // whole blocks of every type
    config.context_length = 4096;
    const std::vector<uint8_t> file = testing::random_gguf(config, type, 11);
    Error e;
    kv_model* handle = nullptr;
    OK(kv_model_load_memory(runtime_.get(), file.data(), file.size(), nullptr, &handle, &e));
    const ModelPtr model(handle);
    EXPECT_TRUE(rc::check(std::string("same bits on every route, ") + kv_type_name(type),
                          [&] { check(model.get(), draw_setup(device), *rc::gen::inRange<size_t>(2, 40)); }));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Promise3, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
