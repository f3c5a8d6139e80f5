// SPDX-License-Identifier: MIT
//
// The functions of a Kernels table that choose among products, the same for every instruction set.
#pragma once

#include "simd/generic/elementwise.h"
#include "simd/generic/product_f32.h"
#include "simd/generic/product_int8.h"

namespace kvasir::cpu::KV_ISA {

template <class Format>
inline void linear_block_type(const LinearArgs& args, uint32_t g0, uint32_t g1) {
  if (args.operand == OperandType::kInt8) return run_linear<Int8Product<Format>>(args, g0, g1);
  run_linear<PanelProduct<Format>>(args, g0, g1);
}

inline void linear(const LinearArgs& args, uint32_t g0, uint32_t g1) {
  switch (args.type) {
    case WeightType::kF32: return run_linear<FloatProduct<LoadF32>>(args, g0, g1);
    case WeightType::kF16: return run_linear<FloatProduct<LoadF16>>(args, g0, g1);
    case WeightType::kBF16:
      if (args.operand == OperandType::kBF16) return run_linear<FloatProduct<LoadBF16Pairs>>(args, g0, g1);
      return run_linear<FloatProduct<LoadBF16>>(args, g0, g1);
    case WeightType::kQ8_0: return linear_block_type<FormatQ8_0>(args, g0, g1);
    case WeightType::kQ4_0: return linear_block_type<FormatQ4_0>(args, g0, g1);
    case WeightType::kQ4_K: return linear_block_type<FormatQ4_K>(args, g0, g1);
    case WeightType::kQ6_K: return linear_block_type<FormatQ6_K>(args, g0, g1);
  }
}

inline void prepare(OperandType type, const float* x, size_t x_stride, uint32_t rows, uint32_t width, void* out,
                    size_t out_stride_bytes) {
  char* bytes = static_cast<char*>(out);
  if (type == OperandType::kInt8) prepare_int8(x, x_stride, rows, width, bytes, out_stride_bytes);
  if (type == OperandType::kBF16) prepare_bf16_as_f32(x, x_stride, rows, width, bytes, out_stride_bytes);
}

}  // namespace kvasir::cpu::KV_ISA
