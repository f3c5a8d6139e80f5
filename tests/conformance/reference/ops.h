// SPDX-License-Identifier: MIT
//
// The ops of include/kvasir/ops.h in double precision: what one op sees, and a function per op. Written from the
// formulas; slow, and without any thought for memory. The values between ops stay double.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "kvasir/ops.h"
#include "reference/cache.h"

namespace kvasir::conformance {

// An activation. `scale` says for each row how large the numbers were that its elements came from: errors are measured
// in it, because a sum that cancels is no more exact than its terms. Ids of experts are whole numbers.
struct Matrix {
  uint32_t rows = 0, width = 0;
  std::vector<double> data;   // [rows][width]
  std::vector<double> scale;  // [rows]

  Matrix() = default;
  Matrix(uint32_t rows_, uint32_t width_)
      : rows(rows_), width(width_), data(size_t{rows_} * width_), scale(rows_, 0.0) {}
  double* row(uint32_t r) { return data.data() + size_t{r} * width; }
  const double* row(uint32_t r) const { return data.data() + size_t{r} * width; }
};

struct WeightMatrix {
  uint32_t depth = 0, rows = 0, width = 0;
  std::vector<double> data;  // [depth][rows][width]

  const double* row(uint32_t matrix, uint32_t r) const { return data.data() + (size_t{matrix} * rows + r) * width; }
};

// What a step gives to ops.
struct StepFacts {
  const std::vector<int32_t>& tokens;
  const std::vector<uint32_t>&positions, &sequence_of, &output_rows;
  const std::vector<float>& embeddings;
  const std::vector<std::vector<std::vector<uint32_t>>>& pages;  // [sequences][groups][...]
};

struct OpView {
  const kvb_op& op;
  const StepFacts& step;
  const std::vector<double>& blob;
  ReferenceCache& cache;
  const Matrix* in[6] = {};            // activations, or null
  const WeightMatrix* weight[6] = {};  // weights, or null
  uint32_t rows = 0, width = 0;        // of out[0], depth included in the rows

  uint32_t param(uint32_t i) const { return op.param[i]; }
  double real(uint32_t i) const { return std::bit_cast<float>(op.param[i]); }
  // Element i of a vector, or `otherwise` without one.
  double element(uint32_t operand, uint32_t i, double otherwise) const {
    return weight[operand] == nullptr ? otherwise : weight[operand]->data[i];
  }
};

// Each gives out[0]; the two with a second output fill `ids`.
Matrix embed(const OpView& view);
Matrix rms_norm(const OpView& view);
Matrix layer_norm(const OpView& view);
Matrix rope(const OpView& view);
Matrix glu(const OpView& view);
Matrix add(const OpView& view);
Matrix activation(const OpView& view);
Matrix scale(const OpView& view);
Matrix softcap(const OpView& view);
Matrix select_rows(const OpView& view);
Matrix copy_heads(const OpView& view);
Matrix linear(const OpView& view);
Matrix head_linear(const OpView& view);
void kv_store(const OpView& view);
Matrix attention(const OpView& view);
Matrix moe_route(const OpView& view, Matrix* ids);
Matrix moe_linear(const OpView& view);
Matrix moe_sum(const OpView& view);
Matrix top_k(const OpView& view, Matrix* ids);

}  // namespace kvasir::conformance
