// SPDX-License-Identifier: MIT
//
// The conversions at load. Measured relative rms error of each (asserted in convert_test.cpp), on random weights:
//
//   any type                         -> F32     0
//   Q4_0, Q5_0, IQ4_NL               -> Q8_0    0       d stays, codes are bytes
//   Q3_K                             -> Q6_K    0       d stays, scales and codes fit
//   IQ4_XS                           -> Q8_0    2.0e-4  d (s - 32) is rounded to f16, codes are bytes
//   any block type                   -> F16     2.1e-4  f16 rounding
//
// Quantising Q4_1, Q5_1, Q2_K or Q5_K anew to Q8_0 would cost 4e-3, nearly as much as fast mode's rounding of
// activations does: together they would come too near the bound of 4e-2. F16 is twice as wide and 20 times closer.
#include "model/convert.h"

#include <cinttypes>
#include <cmath>
#include <cstring>

#include "model/blocks.h"

namespace kvasir {
namespace {

constexpr uint64_t kInQ8 = type_bit(KV_TYPE_Q4_0) | type_bit(KV_TYPE_Q5_0) | type_bit(KV_TYPE_IQ4_NL);

bool is_block_type(uint32_t type) { return type_info(type)->block_values > 1; }

Status overflow(float value, uint64_t index) {
  return Status::error(KV_UNSUPPORTED, "value %" PRIu64 " is %s 65504 and does not fit f16", index,
                       value > 0.0F ? "greater than" : "less than minus");
}

Status to_f16(uint32_t from, const uint8_t* source, uint64_t values, uint8_t* destination) {
  const TypeInfo& info = *type_info(from);
  float block[256];
  for (uint64_t i = 0; i < values; i += info.block_values) {
    dequantize(from, source + i / info.block_values * info.block_bytes, info.block_values, block);
    for (uint32_t j = 0; j < info.block_values; ++j) {
      const uint16_t half = f32_to_f16(block[j]);
      if ((half & 0x7FFFU) == 0x7C00U && std::isfinite(block[j])) return overflow(block[j], i + j);
      std::memcpy(destination + (i + j) * sizeof half, &half, sizeof half);
    }
  }
  return {};
}

// Code i of a block of 32 as the byte Q8_0 holds.
int byte_code(uint32_t from, const uint8_t* block, uint32_t i) {
  if (from == KV_TYPE_Q4_0) return nibble32(block + 2, i) - 8;
  if (from == KV_TYPE_Q5_0) return (nibble32(block + 6, i) | high_bit32(block + 2, i) << 4) - 16;
  return kIq4Table[nibble32(block + 2, i)];
}

void to_q8_0(uint32_t from, const uint8_t* source, uint64_t values, uint8_t* destination) {
  const uint32_t step = type_info(from)->block_bytes;
  for (uint64_t i = 0; i < values; i += 32, source += step, destination += 34) {
    std::memcpy(destination, source, 2);
    for (uint32_t j = 0; j < 32; ++j) destination[2 + j] = static_cast<uint8_t>(byte_code(from, source, j));
  }
}

Status iq4_xs_to_q8_0(const uint8_t* source, uint64_t values, uint8_t* destination) {
  for (uint64_t i = 0; i < values; i += 32, destination += 34) {
    const Iq4Xs block{source + i / 256 * 136};
    const auto sub_block = static_cast<uint32_t>(i % 256 / 32);
    const float d = load_f16(block.block);
    const float scale = d * static_cast<float>(block.scale(sub_block) - 32);
    const uint16_t half = f32_to_f16(scale);
    if ((half & 0x7FFFU) == 0x7C00U && std::isfinite(scale)) return overflow(scale, i);
    std::memcpy(destination, &half, sizeof half);
    for (uint32_t j = 0; j < 32; ++j) destination[2 + j] = static_cast<uint8_t>(block.value(sub_block * 32 + j));
  }
  return {};
}

void q3_k_to_q6_k(const uint8_t* source, uint64_t values, uint8_t* destination) {
  for (uint64_t i = 0; i < values; i += 256, source += 110, destination += 210) {
    const Q3K block{source};
    std::memset(destination, 0, 192);
    for (uint32_t j = 0; j < 256; ++j) {
      const int code = block.code(j) - 4 + 32;  // mirrors code6
      destination[j / 128 * 64 + j % 64] |= static_cast<uint8_t>((code & 15) << (j % 128 / 64 * 4));
      destination[128 + j / 128 * 32 + j % 32] |= static_cast<uint8_t>((code >> 4) << (j % 128 / 32 * 2));
    }
    for (uint32_t j = 0; j < 16; ++j) destination[192 + j] = static_cast<uint8_t>(block.scale(j) - 32);
    std::memcpy(destination + 208, source + 108, 2);
  }
}

}  // namespace

uint32_t nearest_supported(uint32_t type, uint64_t supported, Loss loss) {
  if (type_info(type) == nullptr) return KV_TYPE_DEFAULT;
  const auto has = [supported](uint32_t t) { return (supported & type_bit(t)) != 0; };
  const bool small = loss == Loss::small;
  if (has(type)) return type;
  if (type == KV_TYPE_Q3_K && has(KV_TYPE_Q6_K)) return KV_TYPE_Q6_K;
  if ((kInQ8 & type_bit(type)) != 0 && has(KV_TYPE_Q8_0)) return KV_TYPE_Q8_0;
  if (small && type == KV_TYPE_IQ4_XS && has(KV_TYPE_Q8_0)) return KV_TYPE_Q8_0;
  if (small && is_block_type(type) && has(KV_TYPE_F16)) return KV_TYPE_F16;
  return has(KV_TYPE_F32) ? KV_TYPE_F32 : KV_TYPE_DEFAULT;
}

Status convert(uint32_t from, const void* source, uint64_t values, uint32_t to, void* destination) {
  const auto* bytes = static_cast<const uint8_t*>(source);
  auto* target = static_cast<uint8_t*>(destination);
  if (to == from) {
    uint64_t size = 0;
    KV_CHECK(row_bytes(from, values, &size), KV_INTERNAL, "%" PRIu64 " values are no whole blocks of type %s", values,
             type_name(from));
    std::memcpy(target, bytes, size);
    return {};
  }
  if (to == KV_TYPE_F32) {
    dequantize(from, bytes, values, static_cast<float*>(destination));
    return {};
  }
  if (to == KV_TYPE_F16 && is_block_type(from)) return to_f16(from, bytes, values, target);
  if (to == KV_TYPE_Q8_0 && from == KV_TYPE_IQ4_XS) return iq4_xs_to_q8_0(bytes, values, target);
  if (to == KV_TYPE_Q8_0 && (kInQ8 & type_bit(from)) != 0) {
    to_q8_0(from, bytes, values, target);
    return {};
  }
  if (to == KV_TYPE_Q6_K && from == KV_TYPE_Q3_K) {
    q3_k_to_q6_k(bytes, values, target);
    return {};
  }
  return Status::error(KV_INTERNAL, "there is no conversion from type %s to %s", type_name(from), type_name(to));
}

}  // namespace kvasir
