// SPDX-License-Identifier: MIT
//
// The kernels of the cpu backend as one table of functions per instruction set. Plain pointers and sizes; no ABI structs,
// no threads, no allocation, no failure: arguments have been checked by the caller.
//
// Every function gives the same bits in every table, whatever the number of rows in a call, the range of groups and the
// thread. That needs the same floating-point state everywhere: round to nearest, denormals flushed (FTZ and DAZ).
// The caller sets it (see FloatState in simd/float_state.h). NaN payloads are not part of the promise.
//
// Strides count elements of the pointed-to type unless the name says bytes. Pointers need only the alignment of their
// type unless a line says otherwise. Rows may lie in one call's range or be cut anywhere: each row is computed alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pack/layout.h"

namespace kvasir::cpu {

// What the right-hand side of a product looks like.
enum class OperandType : uint8_t {
  kF32,   // the rows themselves: nothing to prepare, pass x
  kInt8,  // int8 in blocks of 32 with a scale each
  kBF16   // rounded to bf16
};
constexpr OperandType operand_type(WeightType type, bool fast) {
  if (fast && is_block_type(type)) return OperandType::kInt8;
  if (fast && type == WeightType::kBF16) return OperandType::kBF16;
  return OperandType::kF32;
}
constexpr size_t kOperandAlign = 64;

// Bytes of one prepared row, a multiple of 64 but for kF32. The content depends on the table that prepared it.
constexpr size_t operand_row_bytes(OperandType type, uint32_t width) {
  const size_t n = width;
  switch (type) {
    case OperandType::kF32: return n * 4;
    case OperandType::kInt8: return (n + 63) / 64 * 128;  // 64 bytes for each 32 elements, blocks padded to pairs
    case OperandType::kBF16: return (n + 15) / 16 * 64;   // at most one f32 for each element
  }
  return 0;
}

enum class Activation : uint8_t { kSilu = 1, kGelu = 2, kGeluTanh = 3, kRelu = 4 };  // values of KVB_ACT_*
enum class RopePairing : uint8_t { kAdjacent = 1, kHalves = 2 };                     // values of KVB_ROPE_*

// y[t][r] = sum_k W[first_row + r][k] x[t][k] (+ bias[r]) (+ residual[t][r]), r < rows. Sums over k run in rising order;
// the bias is added after the sum, then the residual.
struct LinearArgs {
  WeightType type;
  OperandType operand;    // operand_type(type, fast)
  const void* weight;     // packed matrix, from its row 0
  uint32_t width;         // elements of a row
  uint32_t first_row;     // a view into a fused matrix; fastest where it is a multiple of 16
  uint32_t rows;          // rows of the view
  const void* x;          // [tokens] operand rows; kOperandAlign for kInt8 and kBF16
  size_t x_stride_bytes;  // from one operand row to the next
  uint32_t tokens;
  float* y;  // [tokens, rows]
  size_t y_stride;
  const float* bias;      // [rows] or NULL
  const float* residual;  // [tokens, rows] or NULL; may be y itself
  size_t residual_stride;
};

// Row groups that cover the view: the range of g in Kernels::linear. Different groups write different elements of y.
constexpr uint32_t linear_groups(uint32_t first_row, uint32_t rows) {
  return rows == 0 ? 0 : (first_row + rows - 1) / kGroupRows - first_row / kGroupRows + 1;
}

struct Kernels {
  const char* name;  // "scalar", "avx2", "avx512"

  // Rows x [rows, width] into operand rows (kInt8, kBF16; kF32 needs none). out: kOperandAlign, out_stride_bytes apart.
  // A block that holds NaN or infinity makes every product with it NaN.
  void (*prepare)(OperandType type, const float* x, size_t x_stride, uint32_t rows, uint32_t width, void* out,
                  size_t out_stride_bytes);

  // Row groups [g0, g1) of linear_groups(first_row, rows), all tokens.
  void (*linear)(const LinearArgs& args, uint32_t g0, uint32_t g1);

  // For each run of `group` elements of a row (group divides width): y = x / sqrt(mean(x^2) + eps) * w.
  // w [group] or NULL. y may be x.
  void (*rms_norm)(const float* x, size_t x_stride, const float* w, float eps, uint32_t rows, uint32_t width,
                   uint32_t group, float* y, size_t y_stride);

  // One token's row of heads: x, y [heads, head_dim], y may be x; cos, sin [pairs] of its position, magnitude included.
  // (u, v) becomes (u c - v s, u s + v c); pairs start at element `first` of a head, other elements are copied.
  void (*rope)(const float* x, const float* cos, const float* sin, uint32_t heads, uint32_t head_dim, uint32_t first,
               uint32_t pairs, RopePairing pairing, float* y);

  // Runs of n elements. y may be any of the inputs.
  void (*glu)(Activation act, const float* gate, const float* up, size_t n, float* y);  // y = act(gate) * up
  void (*activate)(Activation act, const float* x, size_t n, float* y);                 // y = act(x)
  void (*add)(const float* a, const float* b, size_t n, float* y);                      // y = a + b
  void (*scale)(const float* x, float factor, size_t n, float* y);                      // y = factor * x
};

// Tables this processor (and operating system) can run, best last: at least "scalar". Static storage.
struct KernelList {
  const Kernels* const* tables;
  uint32_t count;
};
KernelList available_kernels();

// The best table, or the one called `name` (NULL = best); NULL where there is none of that name on this processor.
const Kernels* find_kernels(const char* name);

}  // namespace kvasir::cpu
