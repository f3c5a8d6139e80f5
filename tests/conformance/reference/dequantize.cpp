// SPDX-License-Identifier: MIT
//
// One function per family of blocks. A block is read as fields of bits: `Bits` gives field number i of equal fields
// packed from the least significant bit of the first byte on. Where a type scatters its fields, the comment says where
// value i finds its own.
#include "reference/dequantize.h"

#include <cstring>
#include <stdexcept>

#include "kvasir/types.h"
#include "reference/quantize.h"

namespace kvasir::conformance {
namespace {

using Block = const unsigned char*;

// Field `i` of `width` bits (1, 2, 4, 8) in a row of bytes.
uint32_t field(Block bytes, uint32_t width, uint32_t i) {
  const uint32_t bit = i * width;
  return bytes[bit / 8] >> (bit % 8) & ((1u << width) - 1);
}
double f16_at(Block bytes) { return f16_value(static_cast<uint16_t>(bytes[0] | bytes[1] << 8)); }
double i8(unsigned char byte) { return byte < 128 ? byte : byte - 256; }

// Value i of 32 in 16 bytes: byte i % 16, the low nibble for the first sixteen values.
uint32_t split_nibble(Block q, uint32_t i) { return field(q, 4, 2 * (i % 16) + i / 16); }

double plain(uint32_t type, Block x) {
  if (type == KV_TYPE_F16) return f16_at(x);
  const unsigned char high[4] = {0, 0, x[0], x[1]};
  float value = 0;
  std::memcpy(&value, type == KV_TYPE_F32 ? x : high, 4);
  return value;
}

// Blocks of 32 values, d first. A fifth bit is bit i of the four bytes in front of the nibbles.
double simple(uint32_t type, Block b, uint32_t i) {
  static constexpr double kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const double d = f16_at(b);
  switch (type) {
    case KV_TYPE_Q8_0: return d * i8(b[2 + i]);
    case KV_TYPE_Q4_0: return d * (double(split_nibble(b + 2, i)) - 8);
    case KV_TYPE_Q4_1: return d * split_nibble(b + 4, i) + f16_at(b + 2);
    case KV_TYPE_Q5_0: return d * (double(split_nibble(b + 6, i) + 16 * field(b + 2, 1, i)) - 16);
    case KV_TYPE_Q5_1: return d * (split_nibble(b + 8, i) + 16 * field(b + 4, 1, i)) + f16_at(b + 2);
    default: return d * kTable[split_nibble(b + 2, i)];
  }
}

// s[16] at 0, q[64] at 16, d at 80, m at 82. The two bits of value i: byte i % 32 of the 32 bytes of its half of 128,
// bit pair i / 32 % 4 of it.
double q2_k(Block b, uint32_t i) {
  const uint32_t q = field(b + 16 + i / 128 * 32 + i % 32, 2, i / 32 % 4), s = b[i / 16];
  return f16_at(b + 80) * (s & 15) * q - f16_at(b + 82) * (s >> 4);
}

// h[32] at 0, q[64] at 32, s[12] at 96, d at 108. Low bits as Q2_K; the third is bit i / 32 of h[i % 32].
// Scale k of 16: low four bits are nibble k / 8 of s[k % 8], high two are bit pair k / 4 of s[8 + k % 4].
double q3_k(Block b, uint32_t i) {
  const uint32_t q = field(b + 32 + i / 128 * 32 + i % 32, 2, i / 32 % 4) + 4 * field(b + i % 32, 1, i / 32);
  const uint32_t k = i / 16;
  const uint32_t s = field(b + 96 + k % 8, 4, k / 8) + 16 * field(b + 104 + k % 4, 2, k / 4);
  return f16_at(b + 108) * (double(s) - 32) * (double(q) - 4);
}

// d at 0, m at 2, twelve bytes p of scales at 4, then (Q5_K: h[32],) q[128]. Run k = i / 32.
// Runs 0..3: s in the low six bits of p[k], t in those of p[k + 4]. Runs 4..7: the low four bits of s and t are the two
// nibbles of p[k + 4]; their high two bits are the top bits of p[k - 4] and p[k].
double q45_k(Block b, uint32_t i, bool five) {
  const Block p = b + 4, h = b + 16, q = b + (five ? 48 : 16);
  const uint32_t k = i / 32;
  const uint32_t s = k < 4 ? p[k] & 63 : field(p + k + 4, 4, 0) + 16 * field(p + k - 4, 2, 3);
  const uint32_t t = k < 4 ? p[k + 4] & 63 : field(p + k + 4, 4, 1) + 16 * field(p + k, 2, 3);
  const uint32_t code = field(q + k / 2 * 32 + i % 32, 4, k % 2) + (five ? 16 * field(h + i % 32, 1, k) : 0);
  return f16_at(b) * s * code - f16_at(b + 2) * t;
}

// l[128] at 0, h[64] at 128, i8 s[16] at 192, d at 208. In the half i / 128: the low four bits are a nibble of byte
// i % 64 of 64 bytes (the low one for the first 64 values), the high two are bit pair i / 32 % 4 of byte i % 32 of 32.
double q6_k(Block b, uint32_t i) {
  const uint32_t half = i / 128, low = field(b + 64 * half + i % 64, 4, i % 128 / 64);
  const uint32_t high = field(b + 128 + 32 * half + i % 32, 2, i / 32 % 4);
  return f16_at(b + 208) * i8(b[192 + i / 16]) * (double(low + 16 * high) - 32);
}

// d at 0, u16 h at 2, l[4] at 4, q[128] at 8. Scale k = i / 32: low four bits nibble k of l, high two bit pair k of h.
// The 16 bytes of run k are laid out as an IQ4_NL block behind its d.
double iq4_xs(Block b, uint32_t i) {
  const uint32_t k = i / 32, s = field(b + 4, 4, k) + 16 * field(b + 2, 2, k);
  unsigned char run[18] = {0x00, 0x3c};  // d = 1
  std::memcpy(run + 2, b + 8 + 16 * k, 16);
  return f16_at(b) * (double(s) - 32) * simple(KV_TYPE_IQ4_NL, run, i % 32);
}

double element(uint32_t type, Block block, uint32_t i) {
  switch (type) {
    case KV_TYPE_F32:
    case KV_TYPE_F16:
    case KV_TYPE_BF16: return plain(type, block);
    case KV_TYPE_Q2_K: return q2_k(block, i);
    case KV_TYPE_Q3_K: return q3_k(block, i);
    case KV_TYPE_Q4_K: return q45_k(block, i, false);
    case KV_TYPE_Q5_K: return q45_k(block, i, true);
    case KV_TYPE_Q6_K: return q6_k(block, i);
    case KV_TYPE_IQ4_XS: return iq4_xs(block, i);
    default: return simple(type, block, i);
  }
}

}  // namespace

std::vector<double> dequantize(uint32_t type, const std::vector<unsigned char>& bytes, size_t elements) {
  const uint32_t each = block_elements(type);
  if (elements % each != 0 || elements / each * block_bytes(type) != bytes.size()) {
    throw std::logic_error("a test's tensor has no whole number of blocks");
  }
  std::vector<double> x(elements);
  for (size_t i = 0; i < elements; ++i) {
    x[i] = element(type, bytes.data() + i / each * block_bytes(type), static_cast<uint32_t>(i % each));
  }
  return x;
}

}  // namespace kvasir::conformance
