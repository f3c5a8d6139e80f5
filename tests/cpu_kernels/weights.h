// SPDX-License-Identifier: MIT
//
// Random weights in the layouts of types.h, and what they mean, written from the table there and independent of the
// packing code: one element at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "pack/layout.h"
#include "sdk/half.h"

namespace kvasir::cpu::testing {

constexpr WeightType kAllTypes[] = {WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ8_0,
                                    WeightType::kQ4_0, WeightType::kQ4_K, WeightType::kQ6_K};

inline const char* type_name(WeightType type) {
  static const char* const names[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"};
  return names[static_cast<int>(type)];
}

inline size_t block_bytes(WeightType type) {
  static const size_t bytes[] = {4, 2, 2, 34, 18, 144, 210};
  return bytes[static_cast<int>(type)];
}

// x = scale * sub * code - minimum, with code, sub small integers (block types); x = value (others).
struct Element {
  float value = 0;
  float scale = 0, minimum = 0;
  int32_t sub = 1, code = 0;
};

inline float half_at(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return sdk::f32_from_f16(bits);
}

// Scale j (0 .. 7) and minimum j (8 .. 15) of the 12 bytes of a Q4_K block.
inline int32_t q4_k_field(const uint8_t* s, int j) {
  const int i = j % 8;
  if (i < 4) return s[j < 8 ? i : i + 4] & 63;
  return j < 8 ? (s[i + 4] & 15) | (s[i - 4] >> 6) << 4 : s[i + 4] >> 4 | (s[i] >> 6) << 4;
}

// Element k of a source row.
inline Element element(WeightType type, const uint8_t* row, uint32_t k) {
  Element e;
  const uint32_t size = weight_unit(type).block, i = k % size;
  const uint8_t* b = row + k / size * block_bytes(type);
  switch (type) {
    case WeightType::kF32: std::memcpy(&e.value, b, 4); return e;
    case WeightType::kF16: e.value = half_at(b); return e;
    case WeightType::kBF16: {
      uint16_t bits;
      std::memcpy(&bits, b, 2);
      e.value = sdk::f32_from_bf16(bits);
      return e;
    }
    case WeightType::kQ8_0:
      e.scale = half_at(b);
      e.code = static_cast<int8_t>(b[2 + i]);
      break;
    case WeightType::kQ4_0:
      e.scale = half_at(b);
      e.code = (i < 16 ? b[2 + i] & 15 : b[2 + i - 16] >> 4) - 8;
      break;
    case WeightType::kQ4_K: {
      const int j = static_cast<int>(i / 32);
      const uint8_t byte = b[16 + i / 64 * 32 + i % 32];
      e.scale = half_at(b) * static_cast<float>(q4_k_field(b + 4, j));
      e.minimum = half_at(b + 2) * static_cast<float>(q4_k_field(b + 4, j + 8));
      e.code = j % 2 == 0 ? byte & 15 : byte >> 4;
      break;
    }
    case WeightType::kQ6_K: {
      const uint32_t half = i / 128, j = i % 128;
      const int low = b[half * 64 + j % 64] >> (j / 64 * 4) & 15,
                high = b[128 + half * 32 + j % 32] >> (j / 32 * 2) & 3;
      e.scale = half_at(b + 208);
      e.sub = static_cast<int8_t>(b[192 + i / 16]);
      e.code = (low | high << 4) - 32;
      break;
    }
  }
  e.value = e.scale * static_cast<float>(e.sub) * static_cast<float>(e.code) - e.minimum;
  return e;
}

// A matrix [rows, width] in source layout.
struct Matrix {
  WeightType type;
  uint32_t rows, width;
  std::vector<uint8_t> bytes;

  size_t row_bytes() const { return width / weight_unit(type).block * block_bytes(type); }
  const uint8_t* row(uint32_t r) const { return bytes.data() + r * row_bytes(); }
  Element at(uint32_t r, uint32_t k) const { return element(type, row(r), k); }
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

inline float uniform(Random& random) { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; }

inline void put_half(uint8_t* p, float value) {
  const uint16_t bits = sdk::f16_from_f32(value);
  std::memcpy(p, &bits, 2);
}

// Every code possible, scales of either sign around 1 / 64.
inline Matrix random_matrix(WeightType type, uint32_t rows, uint32_t width, Random& random) {
  Matrix m = {type, rows, width, {}};
  m.bytes.resize(rows * m.row_bytes());
  const size_t step = block_bytes(type);
  for (size_t at = 0; at < m.bytes.size(); at += step) {
    uint8_t* b = m.bytes.data() + at;
    for (size_t i = 0; i < step; ++i) b[i] = static_cast<uint8_t>(random());
    const float value = uniform(random);
    switch (type) {
      case WeightType::kF32: std::memcpy(b, &value, 4); break;
      case WeightType::kF16: put_half(b, value); break;
      case WeightType::kBF16: {
        const uint16_t bits = sdk::bf16_from_f32(value);
        std::memcpy(b, &bits, 2);
        break;
      }
      case WeightType::kQ8_0:
      case WeightType::kQ4_0: put_half(b, value / 64); break;
      case WeightType::kQ4_K:
        put_half(b, value / 64);
        put_half(b + 2, uniform(random) / 64);
        break;
      case WeightType::kQ6_K: put_half(b + 208, value / 64); break;
    }
  }
  return m;
}

}  // namespace kvasir::cpu::testing
