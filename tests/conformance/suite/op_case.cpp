// SPDX-License-Identifier: MIT
//
// Running one op, and judging the distance from the reference.
#include "suite/op_case.h"

#include <cmath>
#include <cstdio>
#include <numeric>

#include "reference/quantize.h"

namespace kvasir::conformance {
namespace {

using testing::ProgramBuilder;
using testing::TestDevice;

// Denormals may be read as 0, and a norm may multiply what is lost.
constexpr double kNothing = 1e-32;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

void require_types(const TestDevice& device, const ProgramBuilder& program, const testing::CacheSpec& cache) {
  const auto require = [&](uint32_t key, uint32_t type, const char* what) {
    if ((device.query(key) >> type & 1) != 0) return;
    throw Unsupported(std::string(what) + " of type " + type_label(type) + " are not among the device's types");
  };
  for (const testing::Tensor& tensor : program.weights) require(KVB_QUERY_WEIGHT_TYPES, tensor.type, "weights");
  for (const kvb_cache_group& group : cache.groups) {
    require(KVB_QUERY_K_TYPES, group.k_type, "cached keys");
    if ((group.flags & KVB_CACHE_LATENT) == 0) require(KVB_QUERY_V_TYPES, group.v_type, "cached values");
    const uint64_t lowest = device.query(KVB_QUERY_PAGE_TOKENS_MIN), highest = device.query(KVB_QUERY_PAGE_TOKENS_MAX);
    if (group.page_tokens >= lowest && group.page_tokens <= highest) continue;
    throw Unsupported("pages of " + std::to_string(group.page_tokens) + " tokens are not possible");
  }
}

void require_cache(const TestDevice& device, const testing::CacheSpec& cache) {
  const kvb_cache_desc desc = cache.desc();
  kvb_cache* made = nullptr;
  kv_error error{};
  const kv_status status = device.api->cache_create(device.get(), &desc, &made, &error);
  device.api->cache_destroy(made);
  if (status == KV_UNSUPPORTED) throw Unsupported(error.message);
  check(status == KV_OK, "cache_create gave " + status_text(status) + ": " + error.message);
}

bool compiles(const TestDevice& device, const ProgramBuilder& program, const testing::CacheSpec& cache) {
  try {
    const testing::TestProgram compiled(device, program, cache);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

void require_supported(const TestDevice& device, const ProgramBuilder& program, const testing::CacheSpec& cache,
                       uint32_t index_of_tested) {
  require_types(device, program, cache);
  require_cache(device, cache);
  const kvb_program_desc desc = program.desc();
  const kvb_cache_desc cache_desc = cache.desc();
  kv_error error{};
  uint32_t index = KVB_NONE - 1;
  const kv_status status = device.api->program_check(device.get(), &desc, &cache_desc, &index, &error);
  if (status == KV_OK) {
    check(index == KVB_NONE, "program_check accepts the program, but names op " + std::to_string(index));
    return;
  }
  check(status == KV_UNSUPPORTED, "program_check gave " + status_text(status) + ": " + error.message);
  check(error.message[0] != '\0', "program_check left no sentence");
  check(index == index_of_tested, "program_check names op " + std::to_string(index) + " instead of op " +
                                      std::to_string(index_of_tested) + ": " + error.message);
  check(!compiles(device, program, cache),
        std::string("program_compile accepts what program_check refuses: ") + error.message);
  throw Unsupported(error.message);
}

void check_within(const Matrix& want, const std::vector<float>& got, const Limit& limit, const std::string& what) {
  check(got.size() == want.data.size(),
        what + ": " + std::to_string(got.size()) + " values instead of " + std::to_string(want.data.size()));
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double distance = std::fabs(double{got[i]} - want.data[i]);
    const double error = distance <= kNothing ? 0 : distance / std::max(want.scale[i / want.width], kNothing);
    squares += error * error;
    if (error <= limit.largest) continue;  // not so for NaN
    throw Failed(what + ": element " + std::to_string(i % want.width) + " of row " + std::to_string(i / want.width) +
                 " is " + number(double{got[i]}) + " instead of " + number(want.data[i]) + ", an error of " +
                 number(error) + " in the scale of the row; the limit is " + number(limit.largest));
  }
  const double nmse = got.empty() ? 0 : squares / static_cast<double>(got.size());
  check(nmse <= limit.nmse,
        what + ": the mean square of the error is " + number(nmse) + ", the limit is " + number(limit.nmse));
}

OpCase::OpCase(std::string_view name, uint32_t tokens, uint32_t compute_mode)
    : builder({tokens, tokens, 4, 4096}), random(name), token_count_(tokens) {
  builder.compute_mode = compute_mode;
}

uint32_t OpCase::input(uint32_t width, const std::vector<float>& table) {
  const uint32_t rows = static_cast<uint32_t>(table.size() / width);
  const uint32_t value = builder.tokens(width);
  builder.op(KVB_OP_EMBED, {builder.matrix(rows, width, table)}, {value});
  return value;
}

kvb_op& OpCase::op(uint16_t code, std::initializer_list<uint32_t> in, std::initializer_list<uint32_t> out,
                   std::initializer_list<uint32_t> param) {
  if (tested_ == KVB_NONE) tested_ = static_cast<uint32_t>(builder.ops.size());
  return builder.op(code, in, out, param);
}

void OpCase::output(uint32_t value) {
  builder.op(KVB_OP_SELECT_ROWS, {value}, {builder.output(builder.values[value].width)});
}

void OpCase::run(Subject& subject, const Limit& limit, uint32_t first) {
  testing::TestHost host;
  const TestDevice device = subject.open(host);
  require_supported(device, builder, cache, tested_);
  const testing::Owned<kvb_queue> queue = device.queue();
  const testing::TestProgram program(device, builder, cache);
  const testing::Owned<kvb_cache> pages = testing::make_cache(device, queue.get(), cache, {});
  testing::StepData step;
  testing::TestSequence sequence{first, {}};
  std::vector<int32_t> ids(token_count_);
  std::iota(ids.begin(), ids.end(), 0);
  step.append(sequence, ids, true);
  const std::vector<float> got = testing::run_step(device, queue.get(), program, pages.get(), step);
  ReferenceCache reference_cache(cache);
  check_within(ReferenceProgram(builder).run(step, reference_cache), got, limit, "the output");
}

const char* mode_label(uint32_t compute_mode) { return compute_mode == KV_COMPUTE_EXACT ? "EXACT" : "FAST"; }

}  // namespace kvasir::conformance
