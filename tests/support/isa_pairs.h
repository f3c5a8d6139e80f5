// SPDX-License-Identifier: MIT
//
// The one table of (weight type, cache type) pairs for which the cpu backend gives the same bits on every instruction set,
// in both compute modes.
#pragma once

#include "kvasir/types.h"

namespace kvasir::test {

struct IsaPair {
  uint32_t weight_type, cache_type;
};

inline constexpr IsaPair kIsaPairs[] = {
    {KV_TYPE_F32, KV_TYPE_F32},   {KV_TYPE_F32, KV_TYPE_F16},   {KV_TYPE_F32, KV_TYPE_BF16},
    {KV_TYPE_F32, KV_TYPE_Q8_0},  {KV_TYPE_F16, KV_TYPE_F32},   {KV_TYPE_F16, KV_TYPE_F16},
    {KV_TYPE_F16, KV_TYPE_BF16},  {KV_TYPE_F16, KV_TYPE_Q8_0},  {KV_TYPE_BF16, KV_TYPE_F32},
    {KV_TYPE_BF16, KV_TYPE_F16},  {KV_TYPE_BF16, KV_TYPE_BF16}, {KV_TYPE_BF16, KV_TYPE_Q8_0},
    {KV_TYPE_Q8_0, KV_TYPE_F32},  {KV_TYPE_Q8_0, KV_TYPE_F16},  {KV_TYPE_Q8_0, KV_TYPE_BF16},
    {KV_TYPE_Q8_0, KV_TYPE_Q8_0}, {KV_TYPE_Q4_0, KV_TYPE_F32},  {KV_TYPE_Q4_0, KV_TYPE_F16},
    {KV_TYPE_Q4_0, KV_TYPE_BF16}, {KV_TYPE_Q4_0, KV_TYPE_Q8_0}, {KV_TYPE_Q4_K, KV_TYPE_F32},
    {KV_TYPE_Q4_K, KV_TYPE_F16},  {KV_TYPE_Q4_K, KV_TYPE_BF16}, {KV_TYPE_Q4_K, KV_TYPE_Q8_0},
    {KV_TYPE_Q6_K, KV_TYPE_F32},  {KV_TYPE_Q6_K, KV_TYPE_F16},  {KV_TYPE_Q6_K, KV_TYPE_BF16},
    {KV_TYPE_Q6_K, KV_TYPE_Q8_0},
};

}  // namespace kvasir::test
