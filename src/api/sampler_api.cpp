// SPDX-License-Identifier: MIT
#include "api/boundary.h"
#include "api/handles.h"

using kvasir::SamplerOptions;
using kvasir::Status;
using kvasir::api::check_size;
using kvasir::api::check_tail;
using kvasir::api::copy_in;
using kvasir::api::guard;

namespace {

// Zero means default; what the defaults are stands in kvasir.h.
Status configure(const kv_sampler_options& o, SamplerOptions* out) {
  KV_CHECK(o.use_top_p <= 1, KV_INVALID_ARGUMENT, "use_top_p is %u, not 0 or 1", o.use_top_p);
  KV_CHECK(o.log_probabilities <= 1, KV_INVALID_ARGUMENT, "log_probabilities is %u, not 0 or 1", o.log_probabilities);
  KV_CHECK(o.reserved == 0, KV_UNSUPPORTED, "the reserved field of the sampler options is %u, not 0", o.reserved);
  KV_CHECK(o.bias != nullptr || o.bias_count == 0, KV_INVALID_ARGUMENT, "bias is NULL, bias_count %llu",
           static_cast<unsigned long long>(o.bias_count));
  SamplerOptions options;
  options.temperature = o.temperature;
  options.top_k = o.top_k;
  if (o.use_top_p != 0) options.top_p = o.top_p;
  options.min_p = o.min_p;
  if (o.repetition_penalty != 0.0F) options.repetition_penalty = o.repetition_penalty;
  options.frequency_penalty = o.frequency_penalty;
  options.presence_penalty = o.presence_penalty;
  if (o.penalty_last != 0) options.penalty_last = o.penalty_last;
  options.seed = o.seed;
  options.logprobs = o.log_probabilities != 0;
  for (uint64_t i = 0; i < o.bias_count; i++) options.bias.emplace_back(o.bias[i].token, o.bias[i].bias);
  if (o.hook != nullptr) {
    options.hook = [hook = o.hook, user = o.hook_user](std::span<float> logits) {
      hook(user, logits.data(), static_cast<uint32_t>(logits.size()));
    };
  }
  *out = std::move(options);
  return {};
}

}  // namespace

extern "C" {

kv_status kv_sampler_create(const kv_sampler_options* options, kv_sampler** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_sampler_options own;
    KV_RETURN_IF_ERROR(copy_in("kv_sampler_options", options, &own));
    SamplerOptions configured;
    KV_RETURN_IF_ERROR(configure(own, &configured));
    auto handle = std::make_unique<kv_sampler>();
    KV_RETURN_IF_ERROR(kvasir::Sampler::create(std::move(configured), &handle->sampler));
    *out = handle.release();
    return {};
  });
}

void kv_sampler_release(kv_sampler* sampler) { delete sampler; }

kv_status kv_sampler_sample(kv_sampler* sampler, const float* logits, uint32_t count, kv_sample* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(sampler != nullptr, KV_INVALID_ARGUMENT, "sampler is NULL");
    KV_CHECK(logits != nullptr, KV_INVALID_ARGUMENT, "logits is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    KV_RETURN_IF_ERROR(check_size("kv_sample", out->struct_size, sizeof(kv_sample)));
    KV_RETURN_IF_ERROR(check_tail("kv_sample", out, out->struct_size, sizeof(kv_sample)));  // part of it is input
    KV_CHECK(out->top != nullptr || out->top_capacity == 0, KV_INVALID_ARGUMENT, "top is NULL, top_capacity %u",
             out->top_capacity);
    KV_CHECK(out->top_capacity == 0 || sampler->sampler->options().logprobs, KV_INVALID_ARGUMENT,
             "the likeliest tokens need a sampler with log_probabilities set");
    kvasir::SampleResult result;
    KV_RETURN_IF_ERROR(sampler->sampler->sample({logits, count}, &result, out->top_capacity));
    out->token = result.token;
    out->log_probability = result.logprob;
    out->top_count = static_cast<uint32_t>(result.top_n.size());
    for (size_t i = 0; i < result.top_n.size(); i++) out->top[i] = {result.top_n[i].first, result.top_n[i].second};
    return {};
  });
}

kv_status kv_sampler_accept(kv_sampler* sampler, int32_t token, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(sampler != nullptr, KV_INVALID_ARGUMENT, "sampler is NULL");
    return sampler->sampler->accept(token);
  });
}

kv_status kv_sampler_reset(kv_sampler* sampler, uint64_t seed, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(sampler != nullptr, KV_INVALID_ARGUMENT, "sampler is NULL");
    sampler->sampler->reset(seed);
    return {};
  });
}

}  // extern "C"
