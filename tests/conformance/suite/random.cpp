// SPDX-License-Identifier: MIT
//
// The generator, and blocks with random codes and scales that give elements of the wanted size.
#include "suite/random.h"

#include <cmath>
#include <cstring>

#include "reference/quantize.h"

namespace kvasir::conformance {
namespace {

void put_f16(double x, unsigned char* to) {
  const uint16_t bits = f16_bits(x);
  to[0] = static_cast<unsigned char>(bits & 0xff);
  to[1] = static_cast<unsigned char>(bits >> 8);
}

// Where a block keeps d and m, the deviation of its elements for d = 1, and m / d so that their mean is about 0.
struct Scales {
  uint32_t type;
  uint32_t d_at, m_at;  // m_at 0: no m
  double deviation, m_per_d;
};
constexpr Scales kScales[] = {
    {KV_TYPE_Q8_0, 0, 0, 74, 0},     {KV_TYPE_Q4_0, 0, 0, 4.6, 0},     {KV_TYPE_Q4_1, 0, 2, 4.6, -7.5},
    {KV_TYPE_Q5_0, 0, 0, 9.2, 0},    {KV_TYPE_Q5_1, 0, 2, 9.2, -15.5}, {KV_TYPE_Q2_K, 80, 82, 15, 1.5},
    {KV_TYPE_Q3_K, 108, 0, 43, 0},   {KV_TYPE_Q4_K, 0, 2, 240, 7.5},   {KV_TYPE_Q5_K, 0, 2, 480, 15.5},
    {KV_TYPE_Q6_K, 208, 0, 1370, 0}, {KV_TYPE_IQ4_NL, 0, 0, 70, 0},    {KV_TYPE_IQ4_XS, 0, 0, 1300, 0},
};

}  // namespace

Random::Random(std::string_view name) : state_(0xcbf29ce484222325) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Twelve uniform numbers have the variance 1; their sum is exact.
float Random::normal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform();
  return static_cast<float>(sum);
}

std::vector<float> Random::normals(size_t count, float deviation, float mean) {
  std::vector<float> data(count);
  for (float& x : data) x = mean + deviation * normal();
  return data;
}

std::vector<int32_t> Random::tokens(size_t count, uint32_t vocab) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(below(vocab));
  return ids;
}

testing::Tensor Random::weight(uint32_t type, uint32_t rows, uint32_t width, uint32_t depth) {
  testing::Tensor tensor{type, depth, rows, width, {}};
  const uint32_t each = block_bytes(type);
  tensor.bytes.resize(size_t{depth} * rows * (width / block_elements(type)) * each);
  const float deviation = 1 / std::sqrt(static_cast<float>(width));
  for (size_t at = 0; at < tensor.bytes.size(); at += each) fill_block(type, deviation, &tensor.bytes[at]);
  return tensor;
}

void Random::fill_block(uint32_t type, float deviation, unsigned char* block) {
  if (block_elements(type) == 1) {
    const float x = deviation * normal();
    const std::vector<unsigned char> bytes = quantize_head(type, &x, 1);
    std::memcpy(block, bytes.data(), bytes.size());
    return;
  }
  for (uint32_t i = 0; i < block_bytes(type); ++i) block[i] = static_cast<unsigned char>(next());
  for (const Scales& scales : kScales) {
    if (scales.type != type) continue;
    const double d = deviation / scales.deviation * (0.75 + 0.5 * uniform());
    put_f16(d, block + scales.d_at);
    if (scales.m_at != 0) put_f16(d * scales.m_per_d, block + scales.m_at);
  }
}

}  // namespace kvasir::conformance
