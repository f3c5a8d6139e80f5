// SPDX-License-Identifier: MIT
//
// Contexts, sequences, looking inside. Running is in step_api.cpp.
#include "api/boundary.h"
#include "api/context_call.h"
#include "api/handles.h"

using kvasir::Status;
using kvasir::api::check_out;
using kvasir::api::context_call;
using kvasir::api::copy_in;
using kvasir::api::copy_out;
using kvasir::api::guard;

namespace {

Status copy_options(const kv_context_options* options, kv_context_options* out, kv_model_options* load) {
  KV_RETURN_IF_ERROR(copy_in("kv_context_options", options, out));
  if (out->load == nullptr) return {};
  KV_RETURN_IF_ERROR(copy_in("kv_model_options", out->load, load));
  KV_CHECK(load->flags == 0, KV_UNSUPPORTED, "model flags 0x%x do not apply to a context", load->flags);
  out->load = load;
  return {};
}

}  // namespace

extern "C" {

kv_status kv_context_plan(kv_model* model, const kv_context_options* options, kv_memory_plan* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_memory_plan", out));
    kv_context_options own;
    kv_model_options load;
    KV_RETURN_IF_ERROR(copy_options(options, &own, &load));
    kvasir::ContextPlan plan;
    KV_RETURN_IF_ERROR(plan_context(*model->shared->model, own, &plan));
    kv_memory_plan result = {};
    result.page_tokens = plan.page_tokens;
    result.weight_bytes = plan.weight_bytes;
    result.cache_bytes = plan.cache_bytes;
    result.scratch_bytes = plan.scratch_bytes;
    result.bytes_per_token = plan.page_bytes / plan.page_tokens;
    result.max_tokens = plan.max_tokens;
    copy_out(result, out);
    return {};
  });
}

kv_status kv_context_create(kv_model* model, const kv_context_options* options, kv_context** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(model != nullptr, KV_INVALID_ARGUMENT, "model is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_context_options own;
    kv_model_options load;
    KV_RETURN_IF_ERROR(copy_options(options, &own, &load));
    auto handle = std::make_unique<kv_context>();
    handle->model = model->shared;
    KV_RETURN_IF_ERROR(kvasir::Context::create(model->shared->model, own, &handle->context));
    *out = handle.release();
    return {};
  });
}

void kv_context_release(kv_context* context) {
  if (context != nullptr) kvasir::api::ContextUse::release(context);
}

kv_status kv_context_get_info(const kv_context* context, kv_context_info* out, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_RETURN_IF_ERROR(check_out("kv_context_info", out));
    kv_context_info info = {};
    c.info(&info);
    copy_out(info, out);
    return {};
  });
}

kv_status kv_sequence_create(kv_context* context, kv_sequence* out, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    return c.create_sequence(out);
  });
}

kv_status kv_sequence_fork(kv_context* context, kv_sequence sequence, uint64_t length, kv_sequence* out,
                           kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    return c.fork(sequence, length, out);
  });
}

kv_status kv_sequence_truncate(kv_context* context, kv_sequence sequence, uint64_t length, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) { return c.truncate(sequence, length); });
}

kv_status kv_sequence_release(kv_context* context, kv_sequence sequence, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) { return c.release(sequence); });
}

kv_status kv_sequence_length(const kv_context* context, kv_sequence sequence, uint64_t* out, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    return c.length(sequence, out);
  });
}

kv_status kv_sequence_tokens(const kv_context* context, kv_sequence sequence, uint64_t first, size_t count,
                             int32_t* tokens, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_CHECK(tokens != nullptr || count == 0, KV_INVALID_ARGUMENT, "tokens is NULL, count %zu", count);
    return c.tokens(sequence, first, count, tokens);
  });
}

kv_status kv_cache_read(kv_context* context, kv_sequence sequence, uint32_t layer, uint32_t what, uint64_t first,
                        uint64_t count, float* out, uint64_t floats, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) -> Status {
    KV_CHECK(out != nullptr || count == 0, KV_INVALID_ARGUMENT, "out is NULL");
    return c.read_rows(sequence, layer, what, first, count, out, floats);
  });
}

kv_status kv_context_set_trace(kv_context* context, kv_trace_fn trace, void* user, kv_error* error) {
  return context_call(context, error, [&](kvasir::Context& c) { return c.set_trace(trace, user); });
}

}  // extern "C"
