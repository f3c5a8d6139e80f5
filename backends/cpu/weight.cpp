// SPDX-License-Identifier: MIT
//
// Creating a weight: checks, memory, and the call of the packer.
#include "weight.h"

#include <cstring>
#include <memory>

#include "pack/pack.h"
#include "sdk/errors.h"
#include "sdk/half.h"
#include "sdk/structs.h"
#include "sdk/types.h"

namespace kvasir::cpu {
namespace {

// Reads the description; the release callback is not part of it (see ReleaseGuard).
kv_status read_desc(const kvb_weight_desc* desc, kvb_weight_desc* out, kv_error* error) {
  KV_TRY(sdk::read_struct(desc, "the weight description", out, error));
  KV_REQUIRE(sdk::known_type(out->type) && (kWeightTypesMask & sdk::type_bit(out->type)) != 0, error, KV_UNSUPPORTED,
             "the cpu backend does not run weights of type %s (%u)", sdk::type_name(out->type), out->type);
  KV_REQUIRE((out->flags & ~uint32_t{KVB_WEIGHT_IMPORT}) == 0, error, KV_UNSUPPORTED,
             "the weight has unknown flags 0x%x", out->flags);
  KV_REQUIRE(out->depth > 0 && out->rows > 0 && out->width > 0, error, KV_INVALID_ARGUMENT,
             "a weight of %u x %u x %u elements is empty", out->depth, out->rows, out->width);
  KV_REQUIRE(out->width % sdk::kTypes[out->type].block == 0, error, KV_INVALID_ARGUMENT,
             "a weight of type %s and width %u ends inside a block of %u", sdk::type_name(out->type), out->width,
             sdk::kTypes[out->type].block);
  return KV_OK;
}

// Bytes of the packed form of one of the `depth` matrices.
bool matrix_bytes(const kvb_weight_desc& desc, uint64_t* out) {
  const uint64_t group = group_bytes(weight_type(desc.type), desc.width);
  return sdk::checked_mul(uint64_t{group_count(desc.rows)}, group, out);
}

kv_status block_bytes(const kvb_weight_desc& desc, uint64_t* out, kv_error* error) {
  uint64_t bytes = uint64_t{desc.width} * sizeof(float);
  if (!is_vector(desc.type, desc.depth, desc.rows)) {
    KV_REQUIRE(matrix_bytes(desc, &bytes) && sdk::checked_mul(bytes, uint64_t{desc.depth}, &bytes), error,
               KV_OUT_OF_MEMORY, "a weight of %u x %u x %u elements is too large", desc.depth, desc.rows, desc.width);
  }
  *out = bytes;
  return KV_OK;
}

void widen(uint32_t type, const void* data, uint32_t width, float* out) {
  if (type == KV_TYPE_F32) {
    std::memcpy(out, data, size_t{width} * sizeof(float));
    return;
  }
  for (uint32_t i = 0; i < width; i++) {
    uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(data) + size_t{i} * 2, 2);
    out[i] = type == KV_TYPE_F16 ? sdk::f32_from_f16(bits) : sdk::f32_from_bf16(bits);
  }
}

void pack(const kvb_weight_desc& desc, std::byte* packed) {
  const WeightType type = weight_type(desc.type);
  uint64_t bytes = 0;
  if (!matrix_bytes(desc, &bytes)) return;  // checked by block_bytes
  for (uint32_t d = 0; d < desc.depth; d++) {
    const char* source = static_cast<const char*>(desc.data) + desc.bytes / desc.depth * d;
    pack_groups(type, source, desc.rows, desc.width, 0, group_count(desc.rows), packed + bytes * d);
  }
}

// Imported memory is copied like any other: it is given back when the call ends, however it ends.
struct ReleaseGuard {
  const kvb_weight_desc* desc;
  ~ReleaseGuard() {
    kvb_weight_desc copy{};
    if (sdk::read_struct(desc, "", &copy, nullptr) != KV_OK) return;
    if ((copy.flags & KVB_WEIGHT_IMPORT) != 0 && copy.release != nullptr) copy.release(copy.release_user);
  }
};

}  // namespace

bool is_vector(uint32_t type, uint32_t depth, uint32_t rows) {
  return depth == 1 && rows == 1 && sdk::kTypes[type].block == 1;
}

WeightType weight_type(uint32_t type) {
  switch (type) {
    case KV_TYPE_F16: return WeightType::kF16;
    case KV_TYPE_BF16: return WeightType::kBF16;
    case KV_TYPE_Q8_0: return WeightType::kQ8_0;
    case KV_TYPE_Q4_0: return WeightType::kQ4_0;
    case KV_TYPE_Q4_K: return WeightType::kQ4_K;
    case KV_TYPE_Q6_K: return WeightType::kQ6_K;
    default: return WeightType::kF32;
  }
}

kv_status weight_memory(const kvb_weight_desc* desc, kvb_memory* out, kv_error* error) {
  kvb_weight_desc copy{};
  KV_TRY(read_desc(desc, &copy, error));
  KV_TRY(sdk::check_out_struct(out, "the memory report", error));
  kvb_memory memory{};
  KV_TRY(block_bytes(copy, &memory.device_bytes, error));
  sdk::write_struct(memory, out);
  return KV_OK;
}

kv_status weight_create(Device& device, const kvb_weight_desc* desc, Weight** out, kv_error* error) {
  const ReleaseGuard release{desc};
  kvb_weight_desc copy{};
  KV_TRY(read_desc(desc, &copy, error));
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  uint64_t given = 0;
  KV_REQUIRE(sdk::tensor_bytes(copy.type, copy.depth, copy.rows, copy.width, &given) && given == copy.bytes, error,
             KV_INVALID_ARGUMENT, "a weight of %u x %u x %u elements of type %s does not have %llu bytes", copy.depth,
             copy.rows, copy.width, sdk::type_name(copy.type), static_cast<unsigned long long>(copy.bytes));
  KV_REQUIRE(copy.data != nullptr, error, KV_INVALID_ARGUMENT, "the weight has no data");

  uint64_t bytes = 0;
  KV_TRY(block_bytes(copy, &bytes, error));
  auto weight = std::make_unique<Weight>(Weight{&device, copy.type, copy.depth, copy.rows, copy.width, {}});
  KV_TRY(sdk::HostBlock::allocate(device.memory, bytes, "a weight", &weight->block, error));
  if (is_vector(copy.type, copy.depth, copy.rows)) {
    widen(copy.type, copy.data, copy.width, weight->block.as<float>());
  } else {
    pack(copy, weight->block.bytes());
  }
  *out = weight.release();
  return KV_OK;
}

}  // namespace kvasir::cpu
