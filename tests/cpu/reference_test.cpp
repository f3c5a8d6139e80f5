// SPDX-License-Identifier: MIT
//
// The cpu backend against ref on whole small models: every pair of cache types, head sizes, head ratios, windows,
// weight types and both compute modes, over prefill and decode, within the bounds of tests/support/bounds.h.
#include <gtest/gtest.h>

#include "random_model.h"
#include "support/bounds.h"

namespace kvasir::testing {
namespace {

constexpr uint32_t kCacheTypes[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0};

double bound_of(const ModelShape& shape) {
  return std::max(kvasir::test::logits_bound(shape.compute_mode, shape.k_type),
                  kvasir::test::logits_bound(shape.compute_mode, shape.v_type));
}

// A prompt in one step, then single tokens.
std::vector<float> session(const ModelShape& shape, const RigOptions& options, uint32_t prompt, uint32_t decode) {
  Rig rig(shape, options);
  const std::vector<int32_t> tokens = random_tokens(prompt + decode, shape.vocab, shape.seed);
  std::vector<float> out = rig.run(0, {tokens.begin(), tokens.begin() + prompt}, true);
  for (uint32_t i = 0; i < decode; i++) {
    const std::vector<float> row = rig.run(0, {tokens[prompt + i]});
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

void expect_agreement(const ModelShape& shape, uint32_t prompt = 21, uint32_t decode = 4) {
  const std::vector<float> want = session(shape, {"ref"}, prompt, decode);
  const std::vector<float> got = session(shape, {"cpu"}, prompt, decode);
  const kvasir::test::Deviation deviation = kvasir::test::compare(got, want);
  EXPECT_LE(deviation.relative_rms, bound_of(shape)) << "largest error " << deviation.max;
}

TEST(Reference, EveryPairOfCacheTypes) {
  for (const uint32_t k_type : kCacheTypes) {
    for (const uint32_t v_type : kCacheTypes) {
      SCOPED_TRACE(std::string(sdk::type_name(k_type)) + " keys, " + sdk::type_name(v_type) + " values");
      ModelShape shape;
      shape.k_type = k_type;
      shape.v_type = v_type;
      shape.page_tokens = 16;
      expect_agreement(shape);
    }
  }
}

TEST(Reference, HeadSizesAndRatios) {
  for (const uint32_t head_dim : {8u, 20u, 48u, 64u, 80u, 128u, 256u}) {
    for (const uint32_t ratio : {1u, 2u, 4u, 8u}) {
      for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_Q8_0}) {
        SCOPED_TRACE(std::to_string(head_dim) + " elements, ratio " + std::to_string(ratio) + ", " +
                     sdk::type_name(type));
        ModelShape shape;
        shape.head_dim = head_dim;
        shape.heads = ratio;
        shape.kv_heads = 1;
        shape.k_type = shape.v_type = type;
        shape.page_tokens = 7;
        expect_agreement(shape, 11, 2);
      }
    }
  }
}

TEST(Reference, OddHeadSizes) {
  for (const uint32_t head_dim : {1u, 2u, 17u, 33u}) {
    for (const uint32_t type : kCacheTypes) {
      SCOPED_TRACE(std::to_string(head_dim) + " elements, " + sdk::type_name(type));
      ModelShape shape;
      shape.head_dim = head_dim;
      shape.heads = 6;
      shape.kv_heads = 2;
      shape.k_type = shape.v_type = type;
      shape.page_tokens = 5;
      expect_agreement(shape, 9, 2);
    }
  }
}

TEST(Reference, ManyHeadsOfOneGroup) {
  ModelShape shape;
  shape.heads = 40;  // more than a tile has rows
  shape.kv_heads = 1;
  shape.head_dim = 4;
  expect_agreement(shape);
}

TEST(Reference, Windows) {
  for (const uint32_t window : {1u, 5u, 16u, 300u}) {
    SCOPED_TRACE("window " + std::to_string(window));
    ModelShape shape;
    shape.window = window;
    shape.page_tokens = 16;
    shape.limits.tokens = 700;
    shape.limits.outputs = 700;
    expect_agreement(shape, window == 300 ? 600 : 40, 3);
  }
}

TEST(Reference, ManySplits) {
  for (const uint32_t type : kCacheTypes) {
    SCOPED_TRACE(sdk::type_name(type));
    ModelShape shape;
    shape.k_type = shape.v_type = type;
    shape.limits.tokens = 700;
    shape.limits.outputs = 700;
    expect_agreement(shape, 650, 3);
  }
}

TEST(Reference, WeightTypesAndModes) {
  for (const uint32_t type :
       {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0, KV_TYPE_Q4_0, KV_TYPE_Q4_K, KV_TYPE_Q6_K}) {
    for (const uint32_t mode : {KV_COMPUTE_EXACT, KV_COMPUTE_FAST}) {
      SCOPED_TRACE(std::string(sdk::type_name(type)) + (mode == KV_COMPUTE_EXACT ? " exact" : " fast"));
      ModelShape shape;
      shape.weight_type = type;
      shape.compute_mode = mode;
      shape.dim = shape.ffn = 256;
      shape.head_dim = 64;
      expect_agreement(shape, 9, 2);
    }
  }
}

}  // namespace
}  // namespace kvasir::testing
