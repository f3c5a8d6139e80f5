// SPDX-License-Identifier: MIT
//
// Random data with a generator of its own, so that every platform tests the same bytes, and random weights of every
// element type.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support/backend_harness.h"

namespace kvasir::conformance {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Different data for different names.
  explicit Random(std::string_view name);

  uint64_t next();  // splitmix64
  uint32_t below(uint32_t count) { return static_cast<uint32_t>(next() % count); }
  double uniform() { return static_cast<double>(next() >> 40) / (1 << 24); }  // [0, 1)
  float normal();                                                             // mean 0, deviation 1, at most 6

  std::vector<float> normals(size_t count, float deviation = 1, float mean = 0);
  std::vector<int32_t> tokens(size_t count, uint32_t vocab);
  // Elements of about 1 / sqrt(width), all codes and scales taking part.
  testing::Tensor weight(uint32_t type, uint32_t rows, uint32_t width, uint32_t depth = 1);

 private:
  void fill_block(uint32_t type, float deviation, unsigned char* block);

  uint64_t state_;
};

}  // namespace kvasir::conformance
