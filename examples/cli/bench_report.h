// SPDX-License-Identifier: MIT
//
// What `kvasir bench` measured, as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "memory_speed.h"

namespace kvasir::cli {

struct Spread {
  double median = 0, min = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

struct BenchRow {
  bool prefill = false;        // else decode
  uint64_t depth = 0;          // tokens in the cache before
  uint64_t tokens = 0;         // per run
  Spread speed;                // tokens per second
  double bytes_per_token = 0;  // read per decoded token: weights, and keys and values so far
};

struct BenchReport {
  std::string model, context;
  uint64_t weight_bytes = 0, cache_bytes_per_token = 0;
  MemorySpeed memory;
  std::vector<BenchRow> rows;
};

void print_machine(const MemorySpeed& memory);
void print_machine_json(const MemorySpeed& memory);
void print_bench(const BenchReport& report);
void print_bench_json(const BenchReport& report);

}  // namespace kvasir::cli
