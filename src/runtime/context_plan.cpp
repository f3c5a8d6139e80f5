// SPDX-License-Identifier: MIT
#include "runtime/context_plan.h"

#include <algorithm>
#include <utility>

#include "model/types.h"

namespace kvasir {

namespace {

constexpr uint32_t kMaxPosition = 0x7fffffff;  // positions are 31-bit: int32 token indices in every kernel
constexpr uint64_t kUnknownContext = 4096;     // tokens, when neither model, options nor budget say
constexpr uint32_t kDefaultSequences = 16;
constexpr uint32_t kDecodeBucket = 16;  // tokens: a step of some sequences, one token each
constexpr uint32_t kMaxBatch = 1u << 16;
constexpr uint32_t kMaxSequences = 1u << 12;

using ull = unsigned long long;

// The asked-for cache type, or f16 (f32 where the device has no f16), if the device has it.
Status choose_cache_type(const Device& device, uint32_t query, uint32_t asked, const char* what, uint32_t* out) {
  const uint64_t mask = device.query(query, type_bit(KV_TYPE_F32));
  uint32_t type = asked;
  if (type == KV_TYPE_DEFAULT) type = (mask & type_bit(KV_TYPE_F16)) != 0 ? KV_TYPE_F16 : KV_TYPE_F32;
  KV_CHECK(type < kTypeCount, KV_INVALID_ARGUMENT, "%s type %u is not known", what, type);
  KV_CHECK((mask & type_bit(type)) != 0, KV_UNSUPPORTED, "%s cannot keep %s in %s", device.name().c_str(), what,
           type_name(type));
  *out = type;
  return {};
}

Status choose_page_tokens(const Device& device, uint32_t asked, uint32_t* out) {
  const uint64_t least = device.query(KVB_QUERY_PAGE_TOKENS_MIN, 1);
  const uint64_t most = device.query(KVB_QUERY_PAGE_TOKENS_MAX, 4096);
  const uint64_t tokens = asked != 0 ? asked : device.query(KVB_QUERY_PAGE_TOKENS, 16);
  KV_CHECK(tokens >= least && tokens <= most, KV_UNSUPPORTED, "pages of %llu tokens: %s takes %llu to %llu",
           ull{tokens}, device.name().c_str(), ull{least}, ull{most});
  *out = static_cast<uint32_t>(tokens);
  return {};
}

// Steps of 1 token, of a few (decoding several sequences), and of a whole internal batch.
Status plan_buckets(const Model& model, ContextPlan* plan) {
  const uint32_t largest = plan->max_batch_tokens;
  std::vector<uint32_t> sizes = {1, std::min(kDecodeBucket, largest), largest};
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const uint32_t size : sizes) {
    Bucket bucket;
    bucket.max_tokens = size;
    bucket.max_outputs = std::min(size, plan->max_sequences);
    KV_RETURN_IF_ERROR(plan_scratch(model.program(), size, bucket.max_outputs, &bucket.scratch));
    for (kvb_value& value : bucket.scratch.values) {  // as they are on the device
      if (value.kind == KVB_VALUE_WEIGHT) value.type = plan->weight_types[value.place];
    }
    plan->buckets.push_back(std::move(bucket));
  }
  return {};
}

// Bytes of `pages` pages in every group.
Status measure_cache(const Model& model, const ContextPlan& plan, uint64_t pages, uint64_t* out) {
  KV_CHECK(pages < KVB_NONE, KV_OUT_OF_MEMORY, "%llu pages of %u tokens are more than page numbers can count",
           ull{pages}, plan.page_tokens);
  const std::vector<uint32_t> counts(plan.groups.size(), static_cast<uint32_t>(pages));
  const kvb_cache_desc desc = plan.cache_desc(model);
  kvb_memory memory = {};
  memory.struct_size = sizeof memory;
  const Device& device = *plan.device;
  KV_RETURN_IF_ERROR(backend_call([&](kv_error* error) {
    return device.api().cache_memory(device.handle(), &desc, counts.data(), &memory, error);
  }));
  *out = memory.device_bytes + memory.host_bytes;
  return {};
}

Status measure_programs(const Model& model, const ContextPlan& plan, uint64_t* bytes) {
  const Device& device = *plan.device;
  const kvb_cache_desc cache = plan.cache_desc(model);
  uint64_t total = 0;
  for (const Bucket& bucket : plan.buckets) {
    const kvb_program_desc desc = plan.program_desc(model, bucket);
    uint32_t first = KVB_NONE;
    KV_RETURN_IF_ERROR(backend_call(
        [&](kv_error* error) { return device.api().program_check(device.handle(), &desc, &cache, &first, error); }));
    kvb_memory memory = {};
    memory.struct_size = sizeof memory;
    KV_RETURN_IF_ERROR(backend_call(
        [&](kv_error* error) { return device.api().program_memory(device.handle(), &desc, &cache, &memory, error); }));
    total += memory.device_bytes + memory.host_bytes;
  }
  *bytes = total + uint64_t{plan.max_sequences} * model.program().output_width * sizeof(float);
  return {};
}

uint64_t pages_for(uint64_t tokens, uint32_t page_tokens) { return tokens / page_tokens + (tokens % page_tokens != 0); }

// What bounds the capacity.
std::string limit_text(uint64_t budget, uint64_t device_memory) {
  if (budget != 0) return "the memory budget of " + std::to_string(budget) + " bytes";
  if (device_memory != 0) return "the device's memory of " + std::to_string(device_memory) + " bytes";
  return "a 31-bit position";
}

// Capacity in tokens and pages from what the application, the budget, the model and the device's memory allow.
Status choose_capacity(const Model& model, const kv_context_options& options, ContextPlan* plan) {
  const uint64_t total = plan->device->memory_total();
  uint64_t most_pages = kMaxPosition / plan->page_tokens;
  if (plan->page_bytes != 0) {
    if (options.memory_budget != 0) {
      KV_CHECK(options.memory_budget > plan->scratch_bytes, KV_OUT_OF_MEMORY,
               "the memory budget of %llu bytes is used up by %llu bytes of scratch", ull{options.memory_budget},
               ull{plan->scratch_bytes});
      most_pages = std::min(most_pages, (options.memory_budget - plan->scratch_bytes) / plan->page_bytes);
    } else if (total != 0) {
      most_pages = std::min(most_pages, total / plan->page_bytes);
    }
  }
  const uint64_t most_tokens = most_pages * plan->page_tokens;
  uint64_t tokens = options.max_tokens;
  if (tokens == 0) {
    const uint64_t trained = model.config().context_length;
    const uint64_t wanted = trained != 0 ? trained : (options.memory_budget != 0 ? most_tokens : kUnknownContext);
    tokens = std::min(wanted, most_tokens);
  }
  KV_CHECK(tokens != 0 && tokens <= most_tokens, KV_OUT_OF_MEMORY,
           "a cache for %llu tokens takes %llu bytes per page of %u tokens; %s holds %llu tokens",
           ull{std::max<uint64_t>(tokens, 1)}, ull{plan->page_bytes}, plan->page_tokens,
           limit_text(options.memory_budget, plan->page_bytes == 0 ? 0 : total).c_str(), ull{most_tokens});
  plan->max_tokens = tokens;
  // Sequences beside the first may each leave one page partly empty; beyond that, memory is bounded by tokens.
  plan->max_pages = std::min(most_pages, pages_for(tokens, plan->page_tokens) + plan->max_sequences - 1);
  return measure_cache(model, *plan, pages_for(tokens, plan->page_tokens), &plan->cache_bytes);
}

Status check_options(const kv_context_options& options) {
  KV_CHECK((options.flags & ~uint32_t{KV_CONTEXT_POISON}) == 0, KV_UNSUPPORTED, "context flags 0x%x are not known",
           options.flags & ~uint32_t{KV_CONTEXT_POISON});
  KV_CHECK(options.compute_mode <= KV_COMPUTE_FAST, KV_INVALID_ARGUMENT, "compute mode %u is not known",
           options.compute_mode);
  KV_CHECK(options.reserved == 0, KV_UNSUPPORTED, "the reserved field of the context options is %u, not 0",
           options.reserved);
  KV_CHECK(options.max_batch_tokens <= kMaxBatch, KV_INVALID_ARGUMENT,
           "max_batch_tokens is %u, at most %u are possible", options.max_batch_tokens, kMaxBatch);
  KV_CHECK(options.max_sequences <= kMaxSequences, KV_INVALID_ARGUMENT, "max_sequences is %u, at most %u are possible",
           options.max_sequences, kMaxSequences);
  return {};
}

std::string choice_text(const Choice& choice) {
  std::string text;
  for (const PassedOver& other : choice.passed_over) {
    text += (text.empty() ? "" : "\n") + other.name + ": " + other.reason;
  }
  return text;
}

}  // namespace

kvb_cache_desc ContextPlan::cache_desc(const Model& model) const {
  kvb_cache_desc desc = {};
  desc.struct_size = sizeof desc;
  desc.layers = static_cast<uint32_t>(model.program().layer_group.size());
  desc.group_count = static_cast<uint32_t>(groups.size());
  desc.group_stride = sizeof(kvb_cache_group);
  desc.groups = groups.data();
  desc.layer_group = model.program().layer_group.data();
  return desc;
}

kvb_program_desc ContextPlan::program_desc(const Model& model, const Bucket& bucket) const {
  kvb_program_desc desc = describe(model.program(), bucket.scratch);
  desc.max_tokens = bucket.max_tokens;
  desc.max_outputs = bucket.max_outputs;
  desc.max_sequences = std::min(max_sequences, bucket.max_tokens);
  desc.max_length = static_cast<uint32_t>(max_tokens);
  desc.compute_mode = compute_mode;
  return desc;
}

Status plan_context(Model& model, const kv_context_options& options, ContextPlan* out) {
  KV_RETURN_IF_ERROR(check_options(options));
  ContextPlan plan;
  Choice choice;
  KV_RETURN_IF_ERROR(model.device(options.device, options.variant, &plan.device, &choice));
  plan.choice = choice_text(choice);
  const Device& device = *plan.device;

  plan.compute_mode = model.compute_mode(options.compute_mode);
  plan.threads = options.threads;
  plan.poison = (options.flags & KV_CONTEXT_POISON) != 0;
  plan.max_sequences = options.max_sequences != 0 ? options.max_sequences : kDefaultSequences;
  plan.max_batch_tokens = options.max_batch_tokens;
  if (plan.max_batch_tokens == 0) {
    plan.max_batch_tokens =
        static_cast<uint32_t>(std::min<uint64_t>(device.query(KVB_QUERY_BATCH_TOKENS, 512), kMaxBatch));
  }
  KV_RETURN_IF_ERROR(choose_page_tokens(device, options.page_tokens, &plan.page_tokens));

  uint32_t k_type = 0, v_type = 0;
  KV_RETURN_IF_ERROR(choose_cache_type(device, KVB_QUERY_K_TYPES, options.k_type, "keys", &k_type));
  KV_RETURN_IF_ERROR(choose_cache_type(device, KVB_QUERY_V_TYPES, options.v_type, "values", &v_type));
  for (const CacheShape& shape : model.program().cache_groups) {
    plan.groups.push_back(
        {k_type, v_type, shape.kv_heads, shape.k_dim, shape.v_dim, shape.window, plan.page_tokens, 0});
  }

  const Loss loss = allowed_loss(plan.compute_mode);
  KV_RETURN_IF_ERROR(DeviceWeights::choose_types(device, model.program(), model.weights(), loss, &plan.weight_types));
  KV_RETURN_IF_ERROR(
      DeviceWeights::measure(device, model.program(), model.weights(), plan.weight_types, &plan.weight_bytes));

  KV_RETURN_IF_ERROR(plan_buckets(model, &plan));
  KV_RETURN_IF_ERROR(measure_cache(model, plan, 1, &plan.page_bytes));
  // Scratch may depend on the longest sequence, and what is left for the cache on the scratch: an upper bound first.
  KV_RETURN_IF_ERROR(choose_capacity(model, options, &plan));
  KV_RETURN_IF_ERROR(measure_programs(model, plan, &plan.scratch_bytes));
  KV_RETURN_IF_ERROR(choose_capacity(model, options, &plan));
  KV_RETURN_IF_ERROR(measure_programs(model, plan, &plan.scratch_bytes));
  *out = std::move(plan);
  return {};
}

}  // namespace kvasir
