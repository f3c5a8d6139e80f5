// SPDX-License-Identifier: MIT
//
// The packed form, byte by byte. A unit of 16 rows is written from 16 source rows, one row (lane) at a time; unpacking
// goes the same way back. Rows behind the last one are packed as zeros.
#include "pack/pack.h"

#include <cstring>

#include "sdk/half.h"

namespace kvasir::cpu {
namespace {

constexpr uint32_t kLine = 64;

uint16_t read_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
void copy_u16(const uint8_t* from, uint8_t* to) { std::memcpy(to, from, 2); }

// Place of code k of a block of 32 in its eight lines of four codes a lane.
size_t code_place(uint32_t k, uint32_t lane) { return k / 4 * kLine + lane * 4 + k % 4; }

// Each struct: one source block of one row to and from lane `lane` of a packed unit, at element k0 of the unit.

// One line for each element, 16 x 4 bytes.
struct PackF32 {
  static constexpr uint32_t kBlock = 1, kBytes = 4;
  static void pack(const uint8_t* block, uint32_t, uint32_t lane, uint8_t* unit) {
    std::memcpy(unit + lane * 4, block, 4);
  }
  static void unpack(const uint8_t* unit, uint32_t, uint32_t lane, float* out) { std::memcpy(out, unit + lane * 4, 4); }
};

// 16 elements of the even column, then 16 of the odd one.
struct PackF16 {
  static constexpr uint32_t kBlock = 1, kBytes = 2;
  static void pack(const uint8_t* block, uint32_t k0, uint32_t lane, uint8_t* unit) {
    copy_u16(block, unit + k0 * 32 + lane * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t k0, uint32_t lane, float* out) {
    *out = sdk::f32_from_f16(read_u16(unit + k0 * 32 + lane * 2));
  }
};

// Lane r: the even and the odd element of row r.
struct PackBF16 {
  static constexpr uint32_t kBlock = 1, kBytes = 2;
  static void pack(const uint8_t* block, uint32_t k0, uint32_t lane, uint8_t* unit) {
    copy_u16(block, unit + lane * 4 + k0 * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t k0, uint32_t lane, float* out) {
    *out = sdk::f32_from_bf16(read_u16(unit + lane * 4 + k0 * 2));
  }
};

// Two blocks of eight lines of codes + 128, then a line of scales: block 0 in lanes 0 .. 15, block 1 behind it.
struct PackQ8_0 {
  static constexpr uint32_t kBlock = 32, kBytes = 34;
  static void pack(const uint8_t* block, uint32_t k0, uint32_t lane, uint8_t* unit) {
    uint8_t* codes = unit + k0 / 32 * 8 * kLine;
    for (uint32_t k = 0; k < 32; ++k) codes[code_place(k, lane)] = block[2 + k] ^ 0x80;
    copy_u16(block, unit + 16 * kLine + k0 + lane * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t k0, uint32_t lane, float* out) {
    const uint8_t* codes = unit + k0 / 32 * 8 * kLine;
    const float d = sdk::f32_from_f16(read_u16(unit + 16 * kLine + k0 + lane * 2));
    for (uint32_t k = 0; k < 32; ++k) out[k] = d * static_cast<float>(codes[code_place(k, lane)] - 128);
  }
};

// Two blocks of four lines of nibbles (low: elements 0 .. 15 of the block, high: 16 .. 31), then a line of scales.
struct PackQ4_0 {
  static constexpr uint32_t kBlock = 32, kBytes = 18;
  static void pack(const uint8_t* block, uint32_t k0, uint32_t lane, uint8_t* unit) {
    uint8_t* codes = unit + k0 / 32 * 4 * kLine;
    for (uint32_t k = 0; k < 16; ++k) codes[code_place(k, lane)] = block[2 + k];
    copy_u16(block, unit + 8 * kLine + k0 + lane * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t k0, uint32_t lane, float* out) {
    const uint8_t* codes = unit + k0 / 32 * 4 * kLine;
    const float d = sdk::f32_from_f16(read_u16(unit + 8 * kLine + k0 + lane * 2));
    for (uint32_t k = 0; k < 16; ++k) {
      const uint8_t both = codes[code_place(k, lane)];
      out[k] = d * static_cast<float>((both & 15) - 8);
      out[k + 16] = d * static_cast<float>((both >> 4) - 8);
    }
  }
};

// Eight blocks of four lines of nibbles as in Q4_0; then three lines of words that hold sixteen 6-bit fields a lane (eight
// scales, eight minima: five fields in each word, the last one in the three 2-bit tops); then d and m, 16 x f16 each.
struct PackQ4_K {
  static constexpr uint32_t kBlock = 256, kBytes = 144;

  // Scale i (0 .. 7) or minimum i - 8 of the 12 bytes of a source block.
  static uint32_t source_field(const uint8_t* s, uint32_t i) {
    const uint32_t j = i % 8;
    if (j < 4) return s[i < 8 ? j : j + 4] & 63u;
    const uint32_t low = i < 8 ? s[j + 4] & 15u : s[j + 4] >> 4;
    return low | static_cast<uint32_t>(s[i < 8 ? j - 4 : j] >> 6) << 4;
  }
  static uint32_t packed_field(const uint32_t (&word)[3], uint32_t i) {
    if (i < 15) return word[i / 5] >> (6 * (i % 5)) & 63;
    return word[0] >> 30 | (word[1] >> 28 & 12) | (word[2] >> 26 & 48);
  }

  static void pack(const uint8_t* block, uint32_t, uint32_t lane, uint8_t* unit) {
    const uint8_t* q = block + 16;
    for (uint32_t b = 0; b < 8; ++b)  // a source run of 32 bytes holds block 2i in its low, 2i + 1 in its high nibbles
      for (uint32_t k = 0; k < 16; ++k) {
        const uint8_t* pair = q + b / 2 * 32 + k;
        const uint32_t shift = b % 2 * 4, low = pair[0] >> shift & 15u, high = pair[16] >> shift & 15u;
        unit[b * 4 * kLine + code_place(k, lane)] = static_cast<uint8_t>(low | high << 4);
      }
    uint32_t word[3] = {};
    for (uint32_t i = 0; i < 15; ++i) word[i / 5] |= source_field(block + 4, i) << (6 * (i % 5));
    for (uint32_t j = 0; j < 3; ++j) word[j] |= (source_field(block + 4, 15) >> (2 * j) & 3) << 30;
    for (uint32_t j = 0; j < 3; ++j) std::memcpy(unit + (32 + j) * kLine + lane * 4, &word[j], 4);
    copy_u16(block, unit + 35 * kLine + lane * 2);
    copy_u16(block + 2, unit + 35 * kLine + 32 + lane * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t, uint32_t lane, float* out) {
    const float d = sdk::f32_from_f16(read_u16(unit + 35 * kLine + lane * 2));
    const float m = sdk::f32_from_f16(read_u16(unit + 35 * kLine + 32 + lane * 2));
    uint32_t word[3];
    for (uint32_t j = 0; j < 3; ++j) std::memcpy(&word[j], unit + (32 + j) * kLine + lane * 4, 4);
    for (uint32_t b = 0; b < 8; ++b) {
      const float scale = d * static_cast<float>(packed_field(word, b));
      const float minimum = m * static_cast<float>(packed_field(word, b + 8));
      for (uint32_t k = 0; k < 16; ++k) {
        const uint8_t both = unit[b * 4 * kLine + code_place(k, lane)];
        out[b * 32 + k] = scale * static_cast<float>(both & 15) - minimum;
        out[b * 32 + k + 16] = scale * static_cast<float>(both >> 4) - minimum;
      }
    }
  }
};

// Eight blocks of four lines of nibbles as in Q4_0 and two lines of high bits (line h: elements 16 h .. 16 h + 15, four
// to a byte: element 4 f + i of them in bits 2 f of byte i); then, for each block, the pair of int8 scales of its halves
// in 16 lanes; then d, 16 x f16; then half a line unused.
struct PackQ6_K {
  static constexpr uint32_t kBlock = 256, kBytes = 210;
  static constexpr uint32_t kBlockLines = 6;

  static uint32_t source_code(const uint8_t* block, uint32_t k) {
    const uint32_t part = k / 128, i = k % 128;  // halves of 128: 64 bytes of nibbles and 32 of high bits each
    const uint32_t low = block[part * 64 + i % 64] >> (i / 64 * 4) & 15u;
    const uint32_t high = block[128 + part * 32 + i % 32] >> (i / 32 * 2) & 3u;
    return low | high << 4;
  }

  static void pack(const uint8_t* block, uint32_t, uint32_t lane, uint8_t* unit) {
    for (uint32_t b = 0; b < 8; ++b) {
      uint8_t* lines = unit + b * kBlockLines * kLine;
      for (uint32_t k = 0; k < 16; ++k) {
        const uint32_t low = source_code(block, b * 32 + k), high = source_code(block, b * 32 + k + 16);
        lines[code_place(k, lane)] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
      }
      for (uint32_t h = 0; h < 2; ++h)
        for (uint32_t i = 0; i < 4; ++i) {
          uint32_t bits = 0;
          for (uint32_t f = 0; f < 4; ++f) bits |= source_code(block, b * 32 + h * 16 + f * 4 + i) >> 4 << (2 * f);
          lines[(4 + h) * kLine + lane * 4 + i] = static_cast<uint8_t>(bits);
        }
      std::memcpy(unit + 48 * kLine + b * 32 + lane * 2, block + 192 + b * 2, 2);
    }
    copy_u16(block + 208, unit + 52 * kLine + lane * 2);
  }
  static void unpack(const uint8_t* unit, uint32_t, uint32_t lane, float* out) {
    const float d = sdk::f32_from_f16(read_u16(unit + 52 * kLine + lane * 2));
    for (uint32_t b = 0; b < 8; ++b) {
      const uint8_t* lines = unit + b * kBlockLines * kLine;
      const uint8_t* scales = unit + 48 * kLine + b * 32 + lane * 2;
      for (uint32_t k = 0; k < 32; ++k) {
        const uint32_t low = lines[code_place(k % 16, lane)] >> (k / 16 * 4) & 15u;
        const uint32_t high = lines[(4 + k / 16) * kLine + lane * 4 + k % 4] >> (k / 4 % 4 * 2) & 3u;
        const float scale = d * static_cast<float>(static_cast<int8_t>(scales[k / 16]));
        out[b * 32 + k] = scale * static_cast<float>(static_cast<int32_t>(low | high << 4) - 32);
      }
    }
  }
};

template <class Pack>
void pack_as(WeightType type, const uint8_t* source, uint32_t rows, uint32_t width, uint32_t g0, uint32_t g1,
             uint8_t* packed) {
  const WeightUnit unit = weight_unit(type);
  const size_t row_bytes = size_t{width} / Pack::kBlock * Pack::kBytes, stride = group_bytes(type, width);
  for (uint32_t g = g0; g < g1; ++g) {
    uint8_t* group = packed + g * stride;
    std::memset(group, 0, stride);
    for (uint32_t lane = 0; lane < kGroupRows && g * kGroupRows + lane < rows; ++lane) {
      const uint8_t* block = source + (size_t{g} * kGroupRows + lane) * row_bytes;
      for (uint32_t k = 0; k < width; k += Pack::kBlock, block += Pack::kBytes)
        Pack::pack(block, k % unit.width, lane, group + size_t{k / unit.width} * unit.lines * kLine);
    }
  }
}

template <class Pack>
void unpack_as(WeightType type, const uint8_t* packed, uint32_t width, uint32_t row, float* out) {
  const WeightUnit unit = weight_unit(type);
  const uint8_t* group = packed + row / kGroupRows * group_bytes(type, width);
  for (uint32_t k = 0; k < width; k += Pack::kBlock)
    Pack::unpack(group + size_t{k / unit.width} * unit.lines * kLine, k % unit.width, row % kGroupRows, out + k);
}

}  // namespace

void pack_groups(WeightType type, const void* source, uint32_t rows, uint32_t width, uint32_t g0, uint32_t g1,
                 void* packed) {
  const uint8_t* from = static_cast<const uint8_t*>(source);
  uint8_t* to = static_cast<uint8_t*>(packed);
  switch (type) {
    case WeightType::kF32: return pack_as<PackF32>(type, from, rows, width, g0, g1, to);
    case WeightType::kF16: return pack_as<PackF16>(type, from, rows, width, g0, g1, to);
    case WeightType::kBF16: return pack_as<PackBF16>(type, from, rows, width, g0, g1, to);
    case WeightType::kQ8_0: return pack_as<PackQ8_0>(type, from, rows, width, g0, g1, to);
    case WeightType::kQ4_0: return pack_as<PackQ4_0>(type, from, rows, width, g0, g1, to);
    case WeightType::kQ4_K: return pack_as<PackQ4_K>(type, from, rows, width, g0, g1, to);
    case WeightType::kQ6_K: return pack_as<PackQ6_K>(type, from, rows, width, g0, g1, to);
  }
}

void unpack_row(WeightType type, const void* packed, uint32_t width, uint32_t row, float* out) {
  const uint8_t* from = static_cast<const uint8_t*>(packed);
  switch (type) {
    case WeightType::kF32: return unpack_as<PackF32>(type, from, width, row, out);
    case WeightType::kF16: return unpack_as<PackF16>(type, from, width, row, out);
    case WeightType::kBF16: return unpack_as<PackBF16>(type, from, width, row, out);
    case WeightType::kQ8_0: return unpack_as<PackQ8_0>(type, from, width, row, out);
    case WeightType::kQ4_0: return unpack_as<PackQ4_0>(type, from, width, row, out);
    case WeightType::kQ4_K: return unpack_as<PackQ4_K>(type, from, width, row, out);
    case WeightType::kQ6_K: return unpack_as<PackQ6_K>(type, from, width, row, out);
  }
}

}  // namespace kvasir::cpu
