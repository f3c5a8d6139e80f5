// SPDX-License-Identifier: MIT
//
// Decoding reads every weight and the whole cache once per token: bytes times speed is what it moved.
#include "bench_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLikelyCached = 64 << 20;  // a model below this may stay in the processor's caches

double moved(const BenchRow& row) { return row.bytes_per_token * row.speed.median; }
double share(const BenchReport& report, const BenchRow& row) {
  return report.memory.bytes_per_second > 0 ? moved(row) / report.memory.bytes_per_second : 0;
}

Json machine_json(const MemorySpeed& memory) {
  return {{"threads", memory.threads},
          {"buffer_bytes", memory.buffer_bytes},
          {"bytes_per_second", memory.bytes_per_second}};
}

Json row_json(const BenchReport& report, const BenchRow& row) {
  Json out = {{"what", row.prefill ? "prefill" : "decode"},
              {"depth", row.depth},
              {"tokens", row.tokens},
              {"tokens_per_second", {{"median", row.speed.median}, {"min", row.speed.min}, {"max", row.speed.max}}}};
  if (!row.prefill) {
    out["bytes_per_token"] = row.bytes_per_token;
    out["bytes_per_second"] = moved(row);
    out["share_of_memory_speed"] = share(report, row);
  }
  return out;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

void print_machine(const MemorySpeed& memory) {
  std::printf("memory read speed: %.2f GB/s (%u threads, %s)\n", memory.bytes_per_second / 1e9, memory.threads,
              bytes_text(memory.buffer_bytes).c_str());
}

void print_machine_json(const MemorySpeed& memory) { std::printf("%s\n", machine_json(memory).dump(2).c_str()); }

void print_bench(const BenchReport& report) {
  std::printf("%s on %s\n", report.model.c_str(), report.context.c_str());
  print_machine(report.memory);
  std::printf("read per decoded token: %s of weights, and %s per token in the cache\n\n",
              bytes_text(report.weight_bytes).c_str(), bytes_text(report.cache_bytes_per_token).c_str());
  Table table({"what", ">depth", ">tokens", ">tokens/s", ">min", ">max", ">GB/s", ">of memory"});
  for (const BenchRow& row : report.rows) {
    table.add({row.prefill ? "prefill" : "decode", std::to_string(row.depth), std::to_string(row.tokens),
               format("%.1f", row.speed.median), format("%.1f", row.speed.min), format("%.1f", row.speed.max),
               row.prefill ? "" : format("%.2f", moved(row) / 1e9),
               row.prefill ? "" : format("%.0f %%", 100 * share(report, row))});
  }
  table.print();
  if (report.weight_bytes < kLikelyCached) {
    std::printf(
        "\nThis model is small enough for the processor's caches: its share of the memory's speed means little.\n");
  }
}

void print_bench_json(const BenchReport& report) {
  Json rows = Json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(report, row));
  const Json out = {{"model", report.model},
                    {"context", report.context},
                    {"memory", machine_json(report.memory)},
                    {"weight_bytes_per_token", report.weight_bytes},
                    {"cache_bytes_per_token", report.cache_bytes_per_token},
                    {"results", rows}};
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace kvasir::cli
