// SPDX-License-Identifier: MIT
//
// Checking, measuring and compiling programs.
#include "program.h"

#include <algorithm>
#include <memory>

#include "pack/pack.h"
#include "sdk/errors.h"
#include "sdk/handle.h"
#include "sdk/verify.h"

namespace kvasir::cpu {
namespace {

kv_status read_source(const kvb_program_desc* desc, const kvb_cache_desc* cache, uint32_t weight_count,
                      ProgramSource* out, uint32_t* bad_op, kv_error* error) {
  KV_TRY(sdk::read_program(desc, &out->code, error));
  KV_TRY(sdk::read_cache(cache, kCacheLimits, &out->cache, error));
  KV_TRY(group_layouts(out->cache, &out->groups, error));
  return sdk::verify_program(out->code, out->cache, weight_count, bad_op, error);
}

kv_status collect_weights(const Device& device, const sdk::Program& code, kvb_weight* const* handles, uint32_t count,
                          std::vector<const Weight*>* out, kv_error* error) {
  KV_REQUIRE(count == 0 || handles != nullptr, error, KV_INVALID_ARGUMENT, "weights is NULL, but has %u elements",
             count);
  std::vector<const Weight*> weights(count);
  for (uint32_t i = 0; i < count; i++) weights[i] = sdk::object_of<const Weight>(handles[i]);
  for (const kvb_value& value : code.values) {
    if (value.kind != KVB_VALUE_WEIGHT) continue;
    const Weight* weight = weights[static_cast<size_t>(value.place)];
    KV_REQUIRE(weight != nullptr, error, KV_INVALID_ARGUMENT, "weight %llu is NULL",
               static_cast<unsigned long long>(value.place));
    KV_REQUIRE(weight->device == &device, error, KV_INVALID_ARGUMENT, "weight %llu is of another device",
               static_cast<unsigned long long>(value.place));
    KV_TRY(sdk::verify_weight(value, weight->type, weight->depth, weight->rows, weight->width, error));
  }
  *out = std::move(weights);
  return KV_OK;
}

}  // namespace

Program::Program(Device& owner, ProgramSource source, Lowered lowered, std::vector<const Weight*> weights)
    : device_(owner), source_(std::move(source)), lowered_(std::move(lowered)), weights_(std::move(weights)) {
  const auto writes = [](const std::unique_ptr<Stage>& stage) { return stage->writes_output; };
  first_output_stage_ = static_cast<size_t>(std::find_if(lowered_.stages.begin(), lowered_.stages.end(), writes) -
                                            lowered_.stages.begin());
}

kv_status Program::allocate(kv_error* error) {
  KV_TRY(sdk::HostBlock::allocate(device_.memory, lowered_.bytes, "a program", &block_, error));
  for (const OwnPack& pack : lowered_.own_packs)
    pack_groups(WeightType::kF32, weights_[pack.weight]->vector(), 1, pack.width, 0, 1, block_.bytes() + pack.offset);
  return KV_OK;
}

StepView Program::view(const kvb_step& step, Cache& cache, float* out, uint32_t members) {
  StepView view{};
  view.device = &device_;
  view.step = &step;
  view.cache = &cache;
  view.weights = weights_.data();
  view.memory = block_.bytes();
  view.out = out;
  view.members = members;
  view.attention_plans = lowered_.attention_plans.data();
  view.member_base = lowered_.member_base;
  view.member_stride = lowered_.member_stride;
  for (AttentionPlan& plan : lowered_.attention_plans) plan.cut(view);
  return view;
}

kv_status program_check(const Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                        uint32_t* first_unsupported, kv_error* error) {
  KV_REQUIRE(first_unsupported != nullptr, error, KV_INVALID_ARGUMENT, "first_unsupported is NULL");
  ProgramSource source;
  Lowered lowered;
  uint32_t bad_op = KVB_NONE;
  kv_status status = read_source(desc, cache, UINT32_MAX, &source, &bad_op, error);
  if (status == KV_OK)
    status = Lowering(device, source.code, source.cache, source.groups).run(&lowered, &bad_op, error);
  if (status == KV_OK || status == KV_UNSUPPORTED) *first_unsupported = bad_op;
  return status;
}

kv_status program_memory(const Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                         kvb_memory* out, kv_error* error) {
  KV_TRY(sdk::check_out_struct(out, "the memory report", error));
  ProgramSource source;
  Lowered lowered;
  uint32_t bad_op = KVB_NONE;
  KV_TRY(read_source(desc, cache, UINT32_MAX, &source, &bad_op, error));
  KV_TRY(Lowering(device, source.code, source.cache, source.groups).run(&lowered, &bad_op, error));
  kvb_memory memory{};
  memory.device_bytes = lowered.bytes;
  sdk::write_struct(memory, out);
  return KV_OK;
}

kv_status program_compile(Device& device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                          kvb_weight* const* weights, uint32_t weight_count, Program** out, kv_error* error) {
  KV_REQUIRE(out != nullptr, error, KV_INVALID_ARGUMENT, "out is NULL");
  ProgramSource source;
  Lowered lowered;
  std::vector<const Weight*> known;
  uint32_t bad_op = KVB_NONE;
  KV_TRY(read_source(desc, cache, weight_count, &source, &bad_op, error));
  KV_TRY(collect_weights(device, source.code, weights, weight_count, &known, error));
  KV_TRY(Lowering(device, source.code, source.cache, source.groups).run(&lowered, &bad_op, error));
  device.instance.log(KV_LOG_DEBUG, "cpu: a program of %zu ops%s for %u tokens became %zu stages, %llu bytes",
                      source.code.ops.size(), source.code.traced() ? ", traced," : "", source.code.desc.max_tokens,
                      lowered.stages.size(), static_cast<unsigned long long>(lowered.bytes));
  auto program = std::make_unique<Program>(device, std::move(source), std::move(lowered), std::move(known));
  KV_TRY(program->allocate(error));
  *out = program.release();
  return KV_OK;
}

}  // namespace kvasir::cpu
