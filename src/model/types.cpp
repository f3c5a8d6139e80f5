// SPDX-License-Identifier: MIT
//
// The table of element types.
#include "model/types.h"

#include <array>

#include "base/checked.h"

namespace kvasir {
namespace {

// Indexed by KV_TYPE_*. [kTypeCount]
constexpr std::array<TypeInfo, kTypeCount> kTypes = {{
    {"default", 0, 0, 0},
    {"f32", 1, 4, 0},
    {"f16", 1, 2, 1},
    {"bf16", 1, 2, 30},
    {"q8_0", 32, 34, 8},
    {"q4_0", 32, 18, 2},
    {"q4_1", 32, 20, 3},
    {"q5_0", 32, 22, 6},
    {"q5_1", 32, 24, 7},
    {"q2_k", 256, 84, 10},
    {"q3_k", 256, 110, 11},
    {"q4_k", 256, 144, 12},
    {"q5_k", 256, 176, 13},
    {"q6_k", 256, 210, 14},
    {"iq4_nl", 32, 18, 20},
    {"iq4_xs", 256, 136, 23},
}};

struct ForeignType {
  uint32_t gguf_id;
  const char* name;
};

constexpr ForeignType kForeignTypes[] = {
    {9, "q8_1"},   {15, "q8_k"},  {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"}, {19, "iq1_s"},
    {21, "iq3_s"}, {22, "iq2_s"}, {24, "i8"},      {25, "i16"},    {26, "i32"},     {27, "i64"},
    {28, "f64"},   {29, "iq1_m"}, {34, "tq1_0"},   {35, "tq2_0"},  {39, "mxfp4"},
};

}  // namespace

const TypeInfo* type_info(uint32_t type) {
  return type != KV_TYPE_DEFAULT && type < kTypeCount ? &kTypes[type] : nullptr;
}

const char* type_name(uint32_t type) {
  const TypeInfo* info = type_info(type);
  return info != nullptr ? info->name : "unknown";
}

bool row_bytes(uint32_t type, uint64_t values, uint64_t* out) {
  const TypeInfo* info = type_info(type);
  if (info == nullptr || values % info->block_values != 0) return false;
  return checked_mul<uint64_t>(values / info->block_values, info->block_bytes, out);
}

uint32_t type_from_gguf(uint32_t gguf_id) {
  for (uint32_t type = KV_TYPE_F32; type < kTypeCount; ++type) {
    if (kTypes[type].gguf_id == gguf_id) return type;
  }
  return KV_TYPE_DEFAULT;
}

const char* gguf_type_name(uint32_t gguf_id) {
  for (const ForeignType& foreign : kForeignTypes) {
    if (foreign.gguf_id == gguf_id) return foreign.name;
  }
  return "unknown";
}

}  // namespace kvasir
