// SPDX-License-Identifier: MIT
//
// Every weight type, read through EMBED and through LINEAR. The expected values come from decoders written here in
// another way than the backend's: they walk a block byte by byte and say which elements each byte belongs to.
#include <cmath>
#include <random>

#include "ref_fixture.h"
#include "sdk/half.h"
#include "sdk/types.h"

namespace kvasir::testing {
namespace {

using Block = const unsigned char*;

double half_of(Block b) { return sdk::f32_from_f16(static_cast<uint16_t>(b[0] | b[1] << 8)); }
int signed_of(unsigned char byte) { return static_cast<int8_t>(byte); }

constexpr int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void decode_32(uint32_t type, Block b, double* x) {
  const double d = half_of(b);
  if (type == KV_TYPE_Q8_0) {
    for (int i = 0; i < 32; ++i) x[i] = d * signed_of(b[2 + i]);
    return;
  }
  const bool has_min = type == KV_TYPE_Q4_1 || type == KV_TYPE_Q5_1;
  const bool has_high = type == KV_TYPE_Q5_0 || type == KV_TYPE_Q5_1;
  const double m = has_min ? half_of(b + 2) : 0;
  const Block high = b + (has_min ? 4 : 2);
  const Block low = high + (has_high ? 4 : 0);
  uint32_t bits = 0;
  for (uint32_t i = 0; has_high && i < 4; ++i) bits |= uint32_t{high[i]} << 8 * i;
  for (int i = 0; i < 16; ++i) {
    const int codes[2] = {low[i] & 15, low[i] >> 4};
    for (int k = 0; k < 2; ++k) {
      const int element = i + 16 * k;
      const int code = codes[k] + 16 * static_cast<int>(bits >> element & 1);
      if (type == KV_TYPE_IQ4_NL) x[element] = d * kTable[code];
      if (type == KV_TYPE_Q4_0) x[element] = d * (code - 8);
      if (type == KV_TYPE_Q5_0) x[element] = d * (code - 16);
      if (has_min) x[element] = d * code + m;
    }
  }
}

void decode_q2_k(Block b, double* x) {
  const double d = half_of(b + 80), m = half_of(b + 82);
  for (int byte = 0; byte < 64; ++byte) {
    for (int k = 0; k < 4; ++k) {
      const int element = byte / 32 * 128 + k * 32 + byte % 32;
      const int s = b[element / 16];
      x[element] = d * (s % 16) * (b[16 + byte] >> 2 * k & 3) - m * (s / 16);
    }
  }
}

void decode_q3_k(Block b, double* x) {
  int scales[16];
  for (int k = 0; k < 4; ++k) {
    const int high = b[104 + k];
    scales[k] = (b[96 + k] & 15) + 16 * (high & 3);
    scales[k + 4] = (b[100 + k] & 15) + 16 * (high >> 2 & 3);
    scales[k + 8] = (b[96 + k] >> 4) + 16 * (high >> 4 & 3);
    scales[k + 12] = (b[100 + k] >> 4) + 16 * (high >> 6);
  }
  for (int byte = 0; byte < 64; ++byte) {
    for (int k = 0; k < 4; ++k) {
      const int element = byte / 32 * 128 + k * 32 + byte % 32;
      const int top = b[byte % 32] >> (byte / 32 * 4 + k) & 1;
      x[element] = half_of(b + 108) * (scales[element / 16] - 32) * ((b[32 + byte] >> 2 * k & 3) + 4 * top - 4);
    }
  }
}

void decode_q4_q5_k(bool five, Block b, double* x) {
  const double d = half_of(b), m = half_of(b + 2);
  const Block p = b + 4;
  int s[8], t[8];
  for (int k = 0; k < 4; ++k) {
    s[k] = p[k] % 64;
    t[k] = p[k + 4] % 64;
    s[k + 4] = p[k + 8] % 16 + p[k] / 64 * 16;
    t[k + 4] = p[k + 8] / 16 + p[k + 4] / 64 * 16;
  }
  const Block codes = b + (five ? 48 : 16);
  for (int byte = 0; byte < 128; ++byte) {
    for (int k = 0; k < 2; ++k) {
      const int part = byte / 32 * 2 + k;
      const int top = five ? b[16 + byte % 32] >> part & 1 : 0;
      const int code = (k == 0 ? codes[byte] % 16 : codes[byte] / 16) + 16 * top;
      x[part * 32 + byte % 32] = d * s[part] * code - m * t[part];
    }
  }
}

void decode_q6_k(Block b, double* x) {
  const Block high = b + 128, scales = b + 192;
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      const int top = high[32 * half + l];
      const int first = b[64 * half + l], second = b[64 * half + 32 + l];
      const int codes[4] = {first % 16 + 16 * (top & 3), second % 16 + 16 * (top >> 2 & 3),
                            first / 16 + 16 * (top >> 4 & 3), second / 16 + 16 * (top >> 6)};
      for (int k = 0; k < 4; ++k) {
        const int element = 128 * half + 32 * k + l;
        x[element] = half_of(b + 208) * signed_of(scales[element / 16]) * (codes[k] - 32);
      }
    }
  }
}

void decode_iq4_xs(Block b, double* x) {
  const int high = b[2] | b[3] << 8;
  for (int part = 0; part < 8; ++part) {
    const int low = part % 2 == 0 ? b[4 + part / 2] % 16 : b[4 + part / 2] / 16;
    const int scale = low + 16 * (high >> 2 * part & 3) - 32;
    for (int i = 0; i < 16; ++i) {
      const int byte = b[8 + 16 * part + i];
      x[32 * part + i] = half_of(b) * scale * kTable[byte % 16];
      x[32 * part + 16 + i] = half_of(b) * scale * kTable[byte / 16];
    }
  }
}

void decode(uint32_t type, Block b, double* x) {
  switch (type) {
    case KV_TYPE_F32: {
      float value;
      std::memcpy(&value, b, 4);
      *x = value;
      return;
    }
    case KV_TYPE_F16: *x = half_of(b); return;
    case KV_TYPE_BF16: *x = sdk::f32_from_bf16(static_cast<uint16_t>(b[0] | b[1] << 8)); return;
    case KV_TYPE_Q2_K: return decode_q2_k(b, x);
    case KV_TYPE_Q3_K: return decode_q3_k(b, x);
    case KV_TYPE_Q4_K: return decode_q4_q5_k(false, b, x);
    case KV_TYPE_Q5_K: return decode_q4_q5_k(true, b, x);
    case KV_TYPE_Q6_K: return decode_q6_k(b, x);
    case KV_TYPE_IQ4_XS: return decode_iq4_xs(b, x);
    default: return decode_32(type, b, x);
  }
}

// Offsets of the f16 scales in a block; other bytes may hold anything.
std::vector<size_t> scale_offsets(uint32_t type) {
  switch (type) {
    case KV_TYPE_F32: return {};
    case KV_TYPE_Q4_1:
    case KV_TYPE_Q5_1:
    case KV_TYPE_Q4_K:
    case KV_TYPE_Q5_K: return {0, 2};
    case KV_TYPE_Q2_K: return {80, 82};
    case KV_TYPE_Q3_K: return {108};
    case KV_TYPE_Q6_K: return {208};
    default: return {0};
  }
}

Tensor random_tensor(uint32_t type, uint32_t rows, uint32_t width, std::mt19937& random) {
  const sdk::TypeFacts& facts = sdk::kTypes[type];
  Tensor tensor{type, 1, rows, width, std::vector<unsigned char>(size_t{rows} * width / facts.block * facts.bytes)};
  for (unsigned char& byte : tensor.bytes) byte = static_cast<unsigned char>(random());
  std::uniform_real_distribution<float> value(-2, 2);
  for (size_t block = 0; block < tensor.bytes.size(); block += facts.bytes) {
    for (const size_t offset : scale_offsets(type)) {
      const float d = value(random);
      const uint16_t bits16 = type == KV_TYPE_BF16 ? sdk::bf16_from_f32(d) : sdk::f16_from_f32(d);
      std::memcpy(&tensor.bytes[block + offset], &bits16, 2);
    }
    if (type == KV_TYPE_F32) {
      const float d = value(random);
      std::memcpy(&tensor.bytes[block], &d, 4);
    }
  }
  return tensor;
}

std::vector<double> decode_all(const Tensor& tensor) {
  const sdk::TypeFacts& facts = sdk::kTypes[tensor.type];
  std::vector<double> x(size_t{tensor.rows} * tensor.width);
  for (size_t block = 0; block * facts.block < x.size(); ++block) {
    decode(tensor.type, &tensor.bytes[block * facts.bytes], &x[block * facts.block]);
  }
  return x;
}

class Types : public RefTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kRows = 3;
  static constexpr uint32_t kWidth = 512;
  std::mt19937 random_{GetParam()};
  Tensor tensor_ = random_tensor(GetParam(), kRows, kWidth, random_);
};

TEST_P(Types, EmbedReadsRows) {
  ProgramBuilder builder;
  const uint32_t x = builder.tokens(kWidth);
  const uint32_t y = builder.output(kWidth);
  builder.op(KVB_OP_EMBED, {builder.weight(tensor_)}, {x});
  builder.op(KVB_OP_SELECT_ROWS, {x}, {y});
  const CacheSpec no_cache;
  const TestProgram program(device, builder, no_cache);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), no_cache, {});
  StepData step;
  TestSequence sequence;
  step.append(sequence, {2, 0, 1}, true);
  const std::vector<float> rows = run_step(device, queue.get(), program, cache.get(), step);
  const std::vector<double> expected = decode_all(tensor_);
  const uint32_t order[kRows] = {2, 0, 1};
  for (uint32_t t = 0; t < kRows; ++t) {
    for (uint32_t i = 0; i < kWidth; ++i) {
      // One rounding from the exact value: the decoder's doubles are exact.
      ASSERT_EQ(rows[t * kWidth + i], static_cast<float>(expected[order[t] * kWidth + i])) << "row " << t << ", " << i;
    }
  }
}

TEST_P(Types, LinearMultipliesRows) {
  ProgramBuilder builder;
  const uint32_t x = builder.tokens(kWidth);
  const uint32_t picked = builder.selected(kWidth);
  const uint32_t y = builder.output(kRows - 1);
  builder.op(KVB_OP_EMBED, {}, {x});
  builder.op(KVB_OP_SELECT_ROWS, {x}, {picked});
  builder.op(KVB_OP_LINEAR, {picked, builder.weight(tensor_)}, {y}, {1});  // a view: rows 1 and 2
  std::vector<float> row(kWidth);
  std::uniform_real_distribution<float> value(-1, 1);
  for (float& element : row) element = value(random_);
  const std::vector<float> result = run_rows(builder, {}, row, kWidth);
  const std::vector<double> weights = decode_all(tensor_);
  for (uint32_t out = 0; out < 2; ++out) {
    double sum = 0;
    for (uint32_t i = 0; i < kWidth; ++i) sum += row[i] * double{static_cast<float>(weights[(out + 1) * kWidth + i])};
    EXPECT_FLOAT_EQ(result[out], static_cast<float>(sum));
  }
}

std::string name_of(const ::testing::TestParamInfo<uint32_t>& type) { return sdk::type_name(type.param); }
INSTANTIATE_TEST_SUITE_P(All, Types, ::testing::Range(1u, sdk::kTypeCount), name_of);

}  // namespace
}  // namespace kvasir::testing
