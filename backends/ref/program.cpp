// SPDX-License-Identifier: MIT
//
// Programs: what this backend can run, what a program takes, and its compilation, which here is a copy and a few
// allocations. Canonical groups are ignored: every op runs by itself.
#include "program.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sdk/handle.h"
#include "sdk/verify.h"

namespace kvasir::ref {

using sdk::CacheLayout;
using sdk::object_of;

namespace {

// Reads and verifies; `weight_count` as in sdk::verify_program.
kv_status read(const kvb_program_desc* desc, const kvb_cache_desc* cache, uint32_t weight_count, sdk::Program* code,
               CacheLayout* layout, uint32_t* first_unsupported, kv_error* error) {
  KV_TRY(sdk::read_program(desc, code, error));
  KV_TRY(sdk::read_cache(cache, kCacheLimits, layout, error));
  uint32_t bad_op = KVB_NONE;
  const kv_status status = sdk::verify_program(*code, *layout, weight_count, &bad_op, error);
  if (status == KV_UNSUPPORTED) *first_unsupported = bad_op;
  return status;
}

kv_status measure(const sdk::Program& code, const CacheLayout& layout, ProgramSize* out, kv_error* error) {
  ProgramSize size;
  uint64_t widest = 0, numbers = 0, sums = 0;
  for (const kvb_value& value : code.values) widest = std::max<uint64_t>(widest, value.width);
  for (const kvb_op& op : code.ops) {
    if (op.code == KVB_OP_MOE_ROUTE || op.code == KVB_OP_TOP_K)
      numbers = std::max<uint64_t>(numbers, code.in(op, 0)->width);
    if (op.code != KVB_OP_ATTENTION) continue;
    numbers = std::max<uint64_t>(numbers, code.desc.max_length);
    sums = std::max<uint64_t>(sums, layout.group_of(op.param[0]).v_dim);
    if (code.traced()) size.trace = uint64_t{code.desc.max_length} * sizeof(float);
  }
  size.scratch = code.desc.scratch_bytes;
  size.output = code.output_floats(code.desc.max_outputs) * sizeof(float);
  size.row = widest * sizeof(float);
  size.numbers = numbers * sizeof(double);
  size.sums = sums * sizeof(double);
  // All but the scratch come from 32-bit counts and cannot pass 64 bits together.
  size.total = size.row * Program::kRows + size.numbers + size.sums + size.trace;
  KV_REQUIRE(
      sdk::checked_add(size.total, size.output, &size.total) && sdk::checked_add(size.total, size.scratch, &size.total),
      error, KV_OUT_OF_MEMORY, "the program wants %llu bytes of scratch",
      static_cast<unsigned long long>(size.scratch));
  *out = size;
  return KV_OK;
}

// The weights by their index, those of `code` checked against what it expects.
kv_status collect_weights(const Device& device, const sdk::Program& code, kvb_weight* const* handles, uint32_t count,
                          std::vector<const Weight*>* out, kv_error* error) {
  KV_REQUIRE(count == 0 || handles != nullptr, error, KV_INVALID_ARGUMENT, "weights is NULL, but has %u elements",
             count);
  for (uint32_t i = 0; i < count; ++i) out->push_back(object_of<const Weight>(handles[i]));
  for (const kvb_value& value : code.values) {
    if (value.kind != KVB_VALUE_WEIGHT) continue;
    const Weight* weight = (*out)[value.place];
    KV_REQUIRE(weight != nullptr && &weight->device() == &device, error, KV_INVALID_ARGUMENT,
               "weight %llu is NULL or of another device", static_cast<unsigned long long>(value.place));
    KV_TRY(sdk::verify_weight(value, weight->type(), weight->depth(), weight->rows(), weight->width(), error));
  }
  return KV_OK;
}

}  // namespace

Program::Program(Device& device, sdk::Program code, CacheLayout layout, std::vector<const Weight*> weights)
    : device_(device), code_(std::move(code)), layout_(std::move(layout)), weights_(std::move(weights)) {}

kv_status Program::create(Device& device, sdk::Program code, CacheLayout layout, std::vector<const Weight*> weights,
                          Program** out, kv_error* error) {
  std::unique_ptr<Program> program(new Program(device, std::move(code), std::move(layout), std::move(weights)));
  KV_TRY(program->allocate(error));
  *out = program.release();
  return KV_OK;
}

kv_status Program::allocate(kv_error* error) {
  ProgramSize size;
  KV_TRY(measure(code_, layout_, &size, error));
  sdk::HostMemory& memory = device_.memory;
  KV_TRY(sdk::HostBlock::allocate(memory, size.scratch, "activations", &scratch_, error));
  KV_TRY(sdk::HostBlock::allocate(memory, size.output, "output rows", &output_, error));
  for (sdk::HostBlock& row : rows_) KV_TRY(sdk::HostBlock::allocate(memory, size.row, "a weight row", &row, error));
  KV_TRY(sdk::HostBlock::allocate(memory, size.numbers, "a softmax row", &numbers_, error));
  KV_TRY(sdk::HostBlock::allocate(memory, size.sums, "an attention row", &sums_, error));
  return sdk::HostBlock::allocate(memory, size.trace, "a trace row", &trace_, error);
}

float* Program::activation(const kvb_value& value) const {
  if (value.kind == KVB_VALUE_OUTPUT) return output_.as<float>();
  return reinterpret_cast<float*>(scratch_.bytes() + value.place);
}

kv_status program_check(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                        uint32_t* first_unsupported, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr && first_unsupported != nullptr, error, KV_INVALID_ARGUMENT,
               "device or first_unsupported is NULL");
    sdk::Program code;
    CacheLayout layout;
    uint32_t unsupported = KVB_NONE;
    const kv_status status = read(desc, cache, UINT32_MAX, &code, &layout, &unsupported, error);
    if (status == KV_OK || status == KV_UNSUPPORTED) *first_unsupported = unsupported;
    return status;
  });
}

kv_status program_memory(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache, kvb_memory* out,
                         kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(device != nullptr, error, KV_INVALID_ARGUMENT, "device is NULL");
    KV_TRY(sdk::check_out_struct(out, "out", error));
    sdk::Program code;
    CacheLayout layout;
    uint32_t unsupported = KVB_NONE;
    KV_TRY(read(desc, cache, UINT32_MAX, &code, &layout, &unsupported, error));
    ProgramSize size;
    KV_TRY(measure(code, layout, &size, error));
    const uint64_t bookkeeping =
        code.values.size() * sizeof(kvb_value) + code.ops.size() * sizeof(kvb_op) + code.blob.size() * sizeof(uint64_t);
    sdk::write_struct(kvb_memory{sizeof(kvb_memory), 0, size.total, bookkeeping}, out);
    return kv_status{KV_OK};
  });
}

kv_status program_compile(kvb_device* handle, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                          kvb_weight* const* handles, uint32_t weight_count, kvb_program** out, kv_error* error) {
  return sdk::guard(error, [&] {
    KV_REQUIRE(handle != nullptr && out != nullptr, error, KV_INVALID_ARGUMENT, "device or out is NULL");
    Device& device = *object_of<Device>(handle);
    sdk::Program code;
    CacheLayout layout;
    uint32_t unsupported = KVB_NONE;
    KV_TRY(read(desc, cache, weight_count, &code, &layout, &unsupported, error));
    std::vector<const Weight*> weights;
    KV_TRY(collect_weights(device, code, handles, weight_count, &weights, error));
    Program* program = nullptr;
    KV_TRY(Program::create(device, std::move(code), std::move(layout), std::move(weights), &program, error));
    *out = sdk::handle_of<kvb_program>(program);
    return kv_status{KV_OK};
  });
}

void program_destroy(kvb_program* program) { delete object_of<Program>(program); }

}  // namespace kvasir::ref
