// SPDX-License-Identifier: MIT
//
// dequantize: one function per type that widens one block, written after the formulas of kvasir/types.h. Products of a
// scale and a code are exact in f32 but for Q6_K's, so that at most one rounding happens per value.
#include "model/blocks.h"
#include "model/convert.h"

namespace kvasir {
namespace {

void widen_q8_0(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

void widen_q4_0(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * static_cast<float>(nibble32(b + 2, i) - 8);
}

void widen_q4_1(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * static_cast<float>(nibble32(b + 4, i)) + m;
}

void widen_q5_0(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  for (uint32_t i = 0; i < 32; ++i) {
    x[i] = d * static_cast<float>((nibble32(b + 6, i) | high_bit32(b + 2, i) << 4) - 16);
  }
}

void widen_q5_1(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    x[i] = d * static_cast<float>(nibble32(b + 8, i) | high_bit32(b + 4, i) << 4) + m;
  }
}

void widen_q2_k(const uint8_t* b, float* x) {
  const float d = load_f16(b + 80);
  const float m = load_f16(b + 82);
  for (uint32_t i = 0; i < 256; ++i) {
    const int s = b[i / 16];
    x[i] = d * static_cast<float>(s & 15) * static_cast<float>(code2(b + 16, i)) - m * static_cast<float>(s >> 4);
  }
}

void widen_q3_k(const uint8_t* b, float* x) {
  const Q3K block{b};
  const float d = load_f16(b + 108);
  for (uint32_t i = 0; i < 256; ++i) {
    x[i] = d * static_cast<float>(block.scale(i / 16) - 32) * static_cast<float>(block.code(i) - 4);
  }
}

void widen_q4_k(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  for (uint32_t i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(k4_scale(b + 4, i / 32));
    x[i] = scale * static_cast<float>(code4(b + 16, i)) - m * static_cast<float>(k4_minimum(b + 4, i / 32));
  }
}

void widen_q5_k(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  for (uint32_t i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(k4_scale(b + 4, i / 32));
    const int code = code4(b + 48, i) | ((b[16 + i % 32] >> (i / 32)) & 1) << 4;
    x[i] = scale * static_cast<float>(code) - m * static_cast<float>(k4_minimum(b + 4, i / 32));
  }
}

void widen_q6_k(const uint8_t* b, float* x) {
  const float d = load_f16(b + 208);
  for (uint32_t i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
    x[i] = scale * static_cast<float>(code6(b, b + 128, i) - 32);
  }
}

void widen_iq4_nl(const uint8_t* b, float* x) {
  const float d = load_f16(b);
  for (uint32_t i = 0; i < 32; ++i) x[i] = d * static_cast<float>(kIq4Table[nibble32(b + 2, i)]);
}

void widen_iq4_xs(const uint8_t* b, float* x) {
  const Iq4Xs block{b};
  const float d = load_f16(b);
  for (uint32_t i = 0; i < 256; ++i) {
    x[i] = d * static_cast<float>(block.scale(i / 32) - 32) * static_cast<float>(block.value(i));
  }
}

using WidenBlock = void (*)(const uint8_t* block, float* values);

// Indexed by KV_TYPE_*; null for the types without blocks. [kTypeCount]
constexpr WidenBlock kWiden[kTypeCount] = {nullptr,    nullptr,    nullptr,      nullptr,     widen_q8_0, widen_q4_0,
                                           widen_q4_1, widen_q5_0, widen_q5_1,   widen_q2_k,  widen_q3_k, widen_q4_k,
                                           widen_q5_k, widen_q6_k, widen_iq4_nl, widen_iq4_xs};

template <float (*widen)(uint16_t)>
void widen_halves(const uint8_t* source, uint64_t values, float* destination) {
  for (uint64_t i = 0; i < values; ++i) destination[i] = widen(load_u16(source + 2 * i));
}

}  // namespace

void dequantize(uint32_t type, const void* source, uint64_t values, float* destination) {
  const auto* bytes = static_cast<const uint8_t*>(source);
  switch (type) {
    case KV_TYPE_F32: std::memcpy(destination, bytes, values * sizeof *destination); return;
    case KV_TYPE_F16: widen_halves<f16_to_f32>(bytes, values, destination); return;
    case KV_TYPE_BF16: widen_halves<bf16_to_f32>(bytes, values, destination); return;
    default: break;
  }
  const TypeInfo& info = *type_info(type);
  const uint64_t blocks = values / info.block_values;
  for (uint64_t i = 0; i < blocks; ++i) kWiden[type](bytes + i * info.block_bytes, destination + i * info.block_values);
}

}  // namespace kvasir
