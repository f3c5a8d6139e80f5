// SPDX-License-Identifier: MIT
//
// Promise 3 on the cpu backend: the same bits however tokens come in. A random model and random tokens give logits once
// in the plainest way (one step, one thread, pages of 256), then in a random other way: chunks, other sequences in the
// same steps, threads, page size, tracing, an executor, another instruction set, poisoned pages.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "random_model.h"

namespace kvasir::testing {
namespace {

constexpr uint32_t kCacheTypes[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0};
constexpr uint32_t kWeightTypes[] = {KV_TYPE_F32,  KV_TYPE_F16,  KV_TYPE_BF16, KV_TYPE_Q8_0,
                                     KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K};

constexpr kv_parallel_for_fn kExecutors[] = {nullptr, nullptr, serial_executor, threaded_executor};

template <class T, size_t n>
T pick(const T (&from)[n]) {
  return from[*rc::gen::inRange<size_t>(0, n)];
}

ModelShape random_shape() {
  ModelShape shape;
  shape.seed = *rc::gen::inRange<uint32_t>(1, 1000000);
  shape.k_type = pick(kCacheTypes);
  shape.v_type = pick(kCacheTypes);
  shape.weight_type = pick(kWeightTypes);
  shape.compute_mode = *rc::gen::element<uint32_t>(KV_COMPUTE_EXACT, KV_COMPUTE_FAST);
  shape.window = *rc::gen::element<uint32_t>(0, 0, 3, 40, 290);
  const uint32_t ratio = *rc::gen::element<uint32_t>(1, 2, 3, 4, 8);
  shape.kv_heads = *rc::gen::element<uint32_t>(1, 2);
  shape.heads = ratio * shape.kv_heads;
  const bool blocks = sdk::kTypes[shape.weight_type].block > 1;
  if (blocks) {
    shape.dim = shape.ffn = 256;
    shape.head_dim = 256 / shape.kv_heads;
  } else {
    shape.head_dim = *rc::gen::element<uint32_t>(6, 8, 20, 64, 80);
  }
  shape.limits = {700, 700, 4, 1024};
  return shape;
}

std::vector<std::vector<float>> rows_of(const std::vector<float>& flat, size_t width) {
  std::vector<std::vector<float>> rows;
  for (size_t at = 0; at < flat.size(); at += width)
    rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(at),
                      flat.begin() + static_cast<std::ptrdiff_t>(at + width));
  return rows;
}

using Logits = std::map<uint32_t, std::vector<std::vector<float>>>;  // [sequence][token]

// Each sequence alone in one step.
Logits plain(const ModelShape& shape, const std::vector<std::vector<int32_t>>& tokens) {
  Rig rig(shape, {"cpu", nullptr, 1});
  Logits out;
  for (uint32_t s = 0; s < tokens.size(); s++) out[s] = rows_of(rig.run(s, tokens[s], true), shape.vocab);
  return out;
}

// All sequences side by side in random chunks, some steps without some of them. Draws from its own generator: thousands
// of draws of rapidcheck's would take longer than the steps.
Logits chunked(Rig& rig, const ModelShape& shape, const std::vector<std::vector<int32_t>>& tokens, uint32_t seed) {
  constexpr size_t kChunks[] = {1, 2, 7, 64, 700};
  std::mt19937 random(seed);
  const size_t usual = kChunks[random() % 5];
  Logits out;
  std::vector<size_t> done(tokens.size(), 0);
  for (;;) {
    std::vector<Append> appends;
    uint32_t room = shape.limits.tokens;
    bool finished = true;
    for (uint32_t s = 0; s < tokens.size(); s++) {
      const size_t left = tokens[s].size() - done[s];
      finished = finished && left == 0;
      if (left == 0 || random() % 4 == 0) continue;
      const size_t most = std::min<size_t>({left, room, random() % 4 == 0 ? kChunks[random() % 5] : usual});
      if (most == 0) continue;
      const auto from = tokens[s].begin() + static_cast<std::ptrdiff_t>(done[s]);
      appends.push_back({s, {from, from + static_cast<std::ptrdiff_t>(most)}});
      done[s] += most;
      room -= static_cast<uint32_t>(most);
    }
    if (finished) return out;
    if (appends.empty()) continue;
    const auto rows = rows_of(rig.run(appends, true), shape.vocab);
    size_t next = 0;
    for (const Append& append : appends) {
      for (size_t i = 0; i < append.tokens.size(); i++) out[append.sequence].push_back(rows[next++]);
    }
  }
}

void expect_same(const Logits& got, const Logits& want) {
  RC_ASSERT(got.size() == want.size());
  for (const auto& [sequence, rows] : want) {
    RC_ASSERT(got.at(sequence).size() == rows.size());
    for (size_t t = 0; t < rows.size(); t++) {
      if (!same_bits(got.at(sequence)[t], rows[t]))
        RC_FAIL("sequence " + std::to_string(sequence) + ", token " + std::to_string(t));
    }
  }
}

std::vector<std::vector<int32_t>> random_prompts(const ModelShape& shape) {
  std::vector<std::vector<int32_t>> tokens;
  const uint32_t sequences = *rc::gen::inRange<uint32_t>(1, 4);
  for (uint32_t s = 0; s < sequences; s++) {
    const uint32_t length =
        *rc::gen::oneOf(rc::gen::inRange<uint32_t>(1, 40), rc::gen::element<uint32_t>(255, 256, 257, 300, 530));
    tokens.push_back(random_tokens(length, shape.vocab, shape.seed + s));
  }
  return tokens;
}

RC_GTEST_PROP(Promise, SameBitsHoweverTokensComeIn, ()) {
  const ModelShape shape = random_shape();
  const auto tokens = random_prompts(shape);
  ModelShape other = shape;
  other.page_tokens = *rc::gen::element<uint32_t>(1, 4, 16, 100, 256, 512);
  other.traced = *rc::gen::arbitrary<bool>();
  other.shared_scratch = *rc::gen::arbitrary<bool>();
  RigOptions options;
  options.threads = *rc::gen::element<uint32_t>(1, 2, 3, 5);
  options.executor = pick(kExecutors);
  Rig rig(other, options);
  if (*rc::gen::arbitrary<bool>()) rig.poison_all();
  expect_same(chunked(rig, shape, tokens, *rc::gen::inRange<uint32_t>(0, 1u << 30)), plain(shape, tokens));
}

// Every instruction set this processor has.
RC_GTEST_PROP(Promise, SameBitsOnEveryInstructionSet, ()) {
  const ModelShape shape = random_shape();
  const auto tokens = random_tokens(*rc::gen::inRange<uint32_t>(1, 60), shape.vocab, shape.seed);
  Rig scalar(shape, {"cpu", "scalar", 1});
  const std::vector<float> want = scalar.run(0, tokens, true);
  for (const char* variant : {"avx2", "avx512"}) {
    TestHost host;
    try {
      const TestDevice probe(query_of("cpu"), host, variant);
    } catch (const std::runtime_error&) {
      continue;  // the tests of the kernels run it emulated
    }
    Rig rig(shape, {"cpu", variant, 1});
    RC_ASSERT(same_bits(rig.run(0, tokens, true), want));
  }
}

// Truncating and going on another way, then back.
RC_GTEST_PROP(Promise, SameBitsAfterTruncating, ()) {
  const ModelShape shape = random_shape();
  const auto tokens = random_tokens(70, shape.vocab, shape.seed),
             others = random_tokens(70, shape.vocab, shape.seed + 1);
  const size_t keep = *rc::gen::inRange<size_t>(1, 60);
  const auto part = [](const std::vector<int32_t>& from, size_t first, size_t end) {
    return std::vector<int32_t>(from.begin() + static_cast<std::ptrdiff_t>(first),
                                from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  Rig rig(shape), fresh(shape);
  rig.run(0, part(tokens, 0, keep));
  rig.run(0, part(others, keep, 70));
  rig.truncate(0, static_cast<uint32_t>(keep));
  const std::vector<float> got = rig.run(0, part(tokens, keep, 70));
  RC_ASSERT(same_bits(got, fresh.run(0, tokens)));
}

}  // namespace
}  // namespace kvasir::testing
