// SPDX-License-Identifier: MIT
#include "program/plan.h"

#include <algorithm>
#include <utility>

namespace kvasir {

namespace {

constexpr uint64_t kAlign = 64;  // a cache line, and what the widest vector loads want

struct Lifetime {
  size_t first = SIZE_MAX;  // op that writes the value
  size_t last = 0;          // last op that touches it
};

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> result(program.values.size());
  const auto touch = [&](uint32_t value, size_t op) {
    if (value == KVB_NONE) return;
    result[value].first = std::min(result[value].first, op);
    result[value].last = std::max(result[value].last, op);
  };
  for (size_t i = 0; i < program.ops.size(); i++) {
    for (const uint32_t in : program.ops[i].in) touch(in, i);
    for (const uint32_t out : program.ops[i].out) touch(out, i);
  }
  return result;
}

struct Placed {
  uint64_t begin, end;
  Lifetime life;
};

// The lowest place where `bytes` fit beside everything alive at the same time.
uint64_t first_fit(const std::vector<Placed>& placed, const Lifetime& life, uint64_t bytes) {
  uint64_t place = 0;
  for (const Placed& other : placed) {  // sorted by begin
    if (other.life.last < life.first || life.last < other.life.first) continue;
    if (place + bytes <= other.begin) break;
    place = std::max(place, other.end);
  }
  return place;
}

}  // namespace

Status plan_scratch(const Program& program, uint32_t max_tokens, uint32_t max_outputs, ScratchPlan* out) {
  ScratchPlan plan;
  plan.values = program.values;
  const std::vector<Lifetime> lives = lifetimes(program);
  std::vector<Placed> placed;
  for (size_t v = 0; v < plan.values.size(); v++) {
    kvb_value& value = plan.values[v];
    if (value.kind != KVB_VALUE_SCRATCH) continue;
    const uint64_t rows = value.rows == KVB_ROWS_TOKENS ? max_tokens : max_outputs;
    uint64_t bytes = 0;
    KV_CHECK(!__builtin_mul_overflow(rows * value.depth, uint64_t{value.width} * sizeof(float), &bytes) &&
                 bytes < UINT64_MAX / 4,
             KV_INVALID_ARGUMENT, "%llu rows of %u floats do not fit 64 bits", static_cast<unsigned long long>(rows),
             value.width);
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    value.place = first_fit(placed, lives[v], bytes);
    const Placed here = {value.place, value.place + bytes, lives[v]};
    plan.bytes = std::max(plan.bytes, here.end);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  here);
  }
  *out = std::move(plan);
  return {};
}

kvb_program_desc describe(const Program& program, const ScratchPlan& plan) {
  kvb_program_desc desc = {};
  desc.struct_size = sizeof desc;
  desc.value_count = static_cast<uint32_t>(plan.values.size());
  desc.value_stride = sizeof(kvb_value);
  desc.op_count = static_cast<uint32_t>(program.ops.size());
  desc.op_stride = sizeof(kvb_op);
  desc.values = plan.values.data();
  desc.ops = program.ops.data();
  desc.blob = program.blob.data();
  desc.blob_bytes = program.blob.size() * sizeof(double);
  desc.scratch_bytes = plan.bytes;
  return desc;
}

}  // namespace kvasir
