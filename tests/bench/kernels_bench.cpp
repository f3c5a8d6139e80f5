// SPDX-License-Identifier: MIT
//
// Micro-benchmarks of the cpu backend's kernels on one thread: matrix-vector in bytes of weights per second and as a share
// of what this thread reads (measured first), matrix-matrix in operations per second (two for a product and its sum). All
// rates are per second of processor time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pack/layout.h"
#include "simd/float_state.h"
#include "simd/kernels.h"

namespace {

using namespace kvasir::cpu;

constexpr size_t kWeightBytes = size_t{512} << 20;  // far beyond any cache

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<char, Free>;

Block allocate(size_t bytes) {
  return Block(static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
}

// One block of weights for all benchmarks: the speed does not depend on the codes, as long as the scales are numbers.
char* weights() {
  static const Block block = [] {
    Block out = allocate(kWeightBytes);
    std::memset(out.get(), 0x24, kWeightBytes);  // as f16 and f32: small normal numbers
    return out;
  }();
  return block.get();
}

// Bytes per second of one thread fetching every cache line of `weights`: the best of several passes.
double read_bandwidth() {
  static const double best = [] {
    constexpr size_t kWordsPerLine = 8, kAhead = 64 * kWordsPerLine;
    const uint64_t* p = reinterpret_cast<const uint64_t*>(weights());
    double out = 0;
    for (int repeat = 0; repeat < 9; ++repeat) {
      uint64_t sum = 0;
      const std::clock_t start = std::clock();
      for (size_t i = 0; i < kWeightBytes / 8; i += kWordsPerLine) {
        __builtin_prefetch(p + i + kAhead);
        sum += p[i];
      }
      benchmark::DoNotOptimize(sum);
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      out = std::max(out, static_cast<double>(kWeightBytes) / seconds);
    }
    return out;
  }();
  return best;
}

struct Case {
  const Kernels* kernels;
  WeightType type;
  bool fast;
  uint32_t rows, width, tokens;
};

constexpr const char* kTypeNames[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"};

// Runs through as many copies of the matrix as there is room for, so that weights come from memory.
void product(benchmark::State& state, const Case& c) {
  const FloatState float_state;
  const OperandType operand = operand_type(c.type, c.fast);
  const size_t bytes = packed_bytes(c.type, c.rows, c.width), copies = kWeightBytes / bytes;
  const size_t stride = operand == OperandType::kF32 ? c.width * sizeof(float) : operand_row_bytes(operand, c.width);
  const Block rows = allocate(c.tokens * stride);
  std::vector<float> x(size_t{c.tokens} * c.width), y(size_t{c.tokens} * c.rows);
  std::minstd_rand random(1);
  for (float& v : x) v = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  if (operand == OperandType::kF32)
    std::memcpy(rows.get(), x.data(), x.size() * sizeof(float));
  else
    c.kernels->prepare(operand, x.data(), c.width, c.tokens, c.width, rows.get(), stride);

  size_t copy = 0;
  for (auto _ : state) {
    const LinearArgs args = {c.type,     operand, weights() + copy * bytes,
                             c.width,    0,       c.rows,
                             rows.get(), stride,  c.tokens,
                             y.data(),   c.rows,  nullptr,
                             nullptr,    0};
    c.kernels->linear(args, 0, linear_groups(0, c.rows));
    copy = copy + 1 < copies ? copy + 1 : 0;
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const auto rate = benchmark::Counter::kIsRate;
  state.counters["weight_B/s"] = benchmark::Counter(runs * static_cast<double>(bytes), rate);
  state.counters["ops/s"] = benchmark::Counter(runs * 2.0 * c.rows * c.width * c.tokens, rate);
  if (c.tokens == 1)
    state.counters["share_of_read"] = benchmark::Counter(runs * static_cast<double>(bytes) / read_bandwidth(), rate);
}

void prepare(benchmark::State& state, const Kernels& kernels, OperandType operand) {
  const FloatState float_state;
  const uint32_t width = 4096;
  const std::vector<float> x(width, 0.5f);
  const Block out = allocate(operand_row_bytes(operand, width));
  for (auto _ : state) {
    kernels.prepare(operand, x.data(), width, 1, width, out.get(), operand_row_bytes(operand, width));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * width);
}

void norm(benchmark::State& state, const Kernels& kernels) {
  const FloatState float_state;
  const uint32_t width = 4096;
  const std::vector<float> x(width, 0.5f);
  std::vector<float> y(width);
  for (auto _ : state) {
    kernels.rms_norm(x.data(), width, x.data(), 1e-5f, 1, width, width, y.data(), width);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * width);
}

void gate(benchmark::State& state, const Kernels& kernels, Activation act) {
  const FloatState float_state;
  const std::vector<float> x(4096, 0.5f);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    kernels.glu(act, x.data(), x.data(), x.size(), y.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(x.size()));
}

void register_table(const Kernels& kernels) {
  const std::string isa = kernels.name;
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0,
                                WeightType::kQ4_0, WeightType::kQ4_K, WeightType::kQ6_K})
    for (const bool fast : {true, false}) {
      if (fast && operand_type(type, true) == OperandType::kF32) continue;
      const std::string name = isa + "/" + kTypeNames[static_cast<int>(type)] + (fast ? "/fast" : "/exact");
      for (const uint32_t tokens : {1u, 4u, 32u, 128u}) {
        const Case c = {&kernels, type, fast, 2048, 2048, tokens};
        benchmark::RegisterBenchmark((name + "/2048x2048/tokens:" + std::to_string(tokens)).c_str(),
                                     [c](benchmark::State& state) { product(state, c); });
      }
    }
  benchmark::RegisterBenchmark((isa + "/prepare_int8/4096").c_str(),
                               [&kernels](benchmark::State& s) { prepare(s, kernels, OperandType::kInt8); });
  benchmark::RegisterBenchmark((isa + "/prepare_bf16/4096").c_str(),
                               [&kernels](benchmark::State& s) { prepare(s, kernels, OperandType::kBF16); });
  benchmark::RegisterBenchmark((isa + "/rms_norm/4096").c_str(), [&kernels](benchmark::State& s) { norm(s, kernels); });
  benchmark::RegisterBenchmark((isa + "/glu_silu/4096").c_str(),
                               [&kernels](benchmark::State& s) { gate(s, kernels, Activation::kSilu); });
  benchmark::RegisterBenchmark((isa + "/glu_gelu/4096").c_str(),
                               [&kernels](benchmark::State& s) { gate(s, kernels, Activation::kGelu); });
}

}  // namespace

int main(int argc, char** argv) {
  const KernelList list = available_kernels();
  for (uint32_t i = 0; i < list.count; ++i) register_table(*list.tables[i]);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  std::printf("one thread reads %.1f GB/s\n", read_bandwidth() / 1e9);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
