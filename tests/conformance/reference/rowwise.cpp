// SPDX-License-Identifier: MIT
//
// Ops that make each row from the same row of their inputs: embedding, norms, rotation, activations, copies.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/ops.h"

namespace kvasir::conformance {
namespace {

// x times a factor in [0, 1], so the error is measured in the scale of x.
double act(uint32_t kind, double x) {
  if (kind == KVB_ACT_SILU) return x / (1 + std::exp(-x));
  if (kind == KVB_ACT_GELU) return x * std::erfc(-x / std::sqrt(2.0)) / 2;
  if (kind == KVB_ACT_GELU_TANH) {
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    return x / 2 * (1 + std::tanh(inner));
  }
  return std::max(x, 0.0);
}

// The scale of rows whose elements do not cancel.
Matrix with_largest(Matrix y) {
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t i = 0; i < y.width; ++i) y.scale[r] = std::max(y.scale[r], std::fabs(y.row(r)[i]));
  }
  return y;
}

template <typename Function>
Matrix each(const OpView& view, Function function) {
  Matrix y(view.rows, view.width);
  std::transform(view.in[0]->data.begin(), view.in[0]->data.end(), y.data.begin(), function);
  return with_largest(y);
}

}  // namespace

Matrix embed(const OpView& view) {
  Matrix y(view.rows, view.width);
  const double factor = view.real(0) == 0 ? 1 : view.real(0);
  for (uint32_t t = 0; t < y.rows; ++t) {
    const int32_t token = view.step.tokens[t];
    for (uint32_t i = 0; i < y.width; ++i) {
      const double own = token < 0 ? double{view.step.embeddings[size_t(~token) * y.width + i]}
                                   : factor * view.weight[0]->row(0, static_cast<uint32_t>(token))[i];
      const double place = view.weight[1] == nullptr ? 0 : view.weight[1]->row(0, view.step.positions[t])[i];
      y.row(t)[i] = own + place;
      y.scale[t] = std::max(y.scale[t], std::fabs(own) + std::fabs(place));
    }
  }
  return y;
}

Matrix rms_norm(const OpView& view) {
  Matrix y(view.rows, view.width);
  const uint32_t group = view.param(1) == 0 ? y.width : view.param(1);
  for (size_t first = 0; first < y.data.size(); first += group) {
    const double* x = &view.in[0]->data[first];
    double squares = 0;
    for (uint32_t i = 0; i < group; ++i) squares += x[i] * x[i];
    const double root = std::sqrt(squares / group + view.real(0));
    for (uint32_t i = 0; i < group; ++i) y.data[first + i] = x[i] / root * view.element(1, i, 1);
  }
  return with_largest(y);
}

Matrix layer_norm(const OpView& view) {
  Matrix y(view.rows, view.width);
  for (uint32_t r = 0; r < y.rows; ++r) {
    const double* x = view.in[0]->row(r);
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < y.width; ++i) mean += x[i] / y.width;
    for (uint32_t i = 0; i < y.width; ++i) variance += (x[i] - mean) * (x[i] - mean) / y.width;
    const double root = std::sqrt(variance + view.real(0));
    for (uint32_t i = 0; i < y.width; ++i) {
      const double w = view.element(1, i, 1), b = view.element(2, i, 0);
      y.row(r)[i] = (x[i] - mean) / root * w + b;
      y.scale[r] = std::max(y.scale[r], (std::fabs(x[i]) + std::fabs(mean)) / root * std::fabs(w) + std::fabs(b));
    }
  }
  return y;
}

Matrix rope(const OpView& view) {
  kvb_rope rope;
  const double* frequency = view.blob.data() + view.param(2) / sizeof(double);
  std::memcpy(&rope, frequency, sizeof rope);
  frequency += sizeof rope / sizeof(double);
  Matrix y = *view.in[0];
  for (uint32_t t = 0; t < y.rows; ++t) {
    for (uint32_t head = 0; head < view.param(0); ++head) {
      double* rotated = y.row(t) + size_t{head} * view.param(1) + rope.first;
      for (uint32_t i = 0; i < rope.pairs; ++i) {
        const double angle = view.step.positions[t] * frequency[i];
        const double c = rope.magnitude * std::cos(angle), s = rope.magnitude * std::sin(angle);
        const bool adjacent = rope.pairing == KVB_ROPE_ADJACENT;
        double& a = rotated[adjacent ? 2 * i : i];
        double& b = rotated[adjacent ? 2 * i + 1 : i + rope.pairs];
        const double u = a, v = b;
        a = u * c - v * s;
        b = u * s + v * c;
      }
    }
  }
  std::fill(y.scale.begin(), y.scale.end(), 0.0);
  return with_largest(y);
}

Matrix glu(const OpView& view) {
  Matrix y(view.rows, view.width);
  for (uint32_t r = 0; r < y.rows; ++r) {
    const double* gate = view.in[0]->row(r);
    const double* up = view.in[1] != nullptr ? view.in[1]->row(r) : gate + y.width;
    for (uint32_t i = 0; i < y.width; ++i) {
      y.row(r)[i] = act(view.param(0), gate[i]) * up[i];
      y.scale[r] = std::max(y.scale[r], std::fabs(gate[i] * up[i]));
    }
  }
  return y;
}

Matrix add(const OpView& view) {
  Matrix y(view.rows, view.width);
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t i = 0; i < y.width; ++i) {
      const double a = view.in[0]->row(r)[i], b = view.in[1]->row(r)[i];
      y.row(r)[i] = a + b;
      y.scale[r] = std::max(y.scale[r], std::fabs(a) + std::fabs(b));
    }
  }
  return y;
}

Matrix activation(const OpView& view) {
  Matrix y = each(view, [&](double x) { return act(view.param(0), x); });
  y.scale = with_largest(*view.in[0]).scale;
  return y;
}
Matrix scale(const OpView& view) {
  return each(view, [&](double x) { return view.real(0) * x; });
}
Matrix softcap(const OpView& view) {
  return each(view, [&](double x) { return view.real(0) * std::tanh(x / view.real(0)); });
}

Matrix select_rows(const OpView& view) {
  Matrix y(view.rows, view.width);
  for (uint32_t o = 0; o < y.rows; ++o) {
    const uint32_t t = view.step.output_rows[o];
    std::copy_n(view.in[0]->row(t), y.width, y.row(o));
    y.scale[o] = view.in[0]->scale[t];
  }
  return y;
}

Matrix copy_heads(const OpView& view) {
  Matrix y(view.rows, view.width);
  if (view.in[1] != nullptr) y.data = view.in[1]->data;
  const uint32_t heads = view.param(0), sources = view.param(4);
  const uint32_t from_dim = view.in[0]->width / sources, to_dim = y.width / heads;
  for (uint32_t r = 0; r < y.rows; ++r) {
    for (uint32_t head = 0; head < heads; ++head) {
      const double* from = view.in[0]->row(r) + size_t{sources == 1 ? 0 : head} * from_dim + view.param(1);
      std::copy_n(from, view.param(3), y.row(r) + size_t{head} * to_dim + view.param(2));
    }
  }
  return with_largest(y);
}

}  // namespace kvasir::conformance
