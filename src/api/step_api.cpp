// SPDX-License-Identifier: MIT
//
// kv_step, and kv_prefill and kv_decode_step as thin forms of it.
#include "api/boundary.h"
#include "api/context_call.h"
#include "api/handles.h"

using kvasir::Context;
using kvasir::Status;
using kvasir::api::check_size;
using kvasir::api::check_tail;
using kvasir::api::context_call;
using kvasir::api::copy_in;
using kvasir::api::copy_out;

namespace {

// The caller's array of results, one struct_size apart.
class Results {
 public:
  Status open(kv_step_result* first, size_t count) {
    first_ = first;
    if (first == nullptr) return {};
    KV_RETURN_IF_ERROR(check_size("kv_step_result", first->struct_size, sizeof(kv_step_result)));
    stride_ = first->struct_size;
    for (size_t i = 1; i < count; i++) {
      KV_CHECK(at(i)->struct_size == stride_, KV_INVALID_ARGUMENT,
               "results[%zu].struct_size is %u, the first one's is %u", i, at(i)->struct_size, stride_);
    }
    return {};
  }

  void write(size_t index, const Context::Result& result, uint32_t width) {
    if (first_ == nullptr) return;
    kv_step_result out = {};
    out.status = result.status.code();
    out.rows = result.status.ok() ? result.rows : nullptr;
    out.width = out.rows != nullptr ? width : 0;
    out.length = result.length;
    out.computed = result.computed;
    out.message = result.status.message();
    copy_out(out, at(index));
  }

 private:
  kv_step_result* at(size_t index) const {
    return reinterpret_cast<kv_step_result*>(reinterpret_cast<char*>(first_) + index * stride_);
  }

  kv_step_result* first_ = nullptr;
  uint32_t stride_ = 0;
};

// Runs the inputs; the call's status is the first of theirs that is not KV_OK. A call that fails without a
// word about an input leaves the results alone.
Status run(kv_context* handle, std::span<const Context::Input> inputs, const kv_step_options* options,
           kv_step_result* results) {
  kv_step_options own;
  KV_RETURN_IF_ERROR(copy_in("kv_step_options", options, &own));
  Results out;
  KV_RETURN_IF_ERROR(out.open(results, inputs.size()));
  std::vector<Context::Result> ran(inputs.size());
  Status status = handle->context->step(inputs, own, ran);
  const auto failed = std::find_if(ran.begin(), ran.end(), [](const auto& result) { return !result.status.ok(); });
  if (failed == ran.end() && !status.ok()) return status;
  if (failed != ran.end()) status = Status::error(failed->status.code(), "%s", failed->status.message());
  handle->results = std::move(ran);  // borrowed messages live here until the next step
  for (size_t i = 0; i < inputs.size(); i++) out.write(i, handle->results[i], handle->context->row_width());
  return status;
}

Status copy_inputs(const kv_step_input* inputs, size_t count, std::vector<Context::Input>* out) {
  KV_CHECK(inputs != nullptr || count == 0, KV_INVALID_ARGUMENT, "inputs is NULL, count %zu", count);
  std::vector<Context::Input> own;
  if (count == 0) return {};
  const uint32_t stride = inputs->struct_size;
  KV_RETURN_IF_ERROR(check_size("kv_step_input", stride, sizeof(kv_step_input)));
  KV_CHECK(count <= SIZE_MAX / stride, KV_INVALID_ARGUMENT, "%zu inputs are too many", count);
  for (size_t i = 0; i < count; i++) {
    const auto* at = reinterpret_cast<const kv_step_input*>(reinterpret_cast<const char*>(inputs) + i * stride);
    KV_CHECK(at->struct_size == stride, KV_INVALID_ARGUMENT, "inputs[%zu].struct_size is %u, the first one's is %u", i,
             at->struct_size, stride);
    KV_RETURN_IF_ERROR(check_tail("kv_step_input", at, stride, sizeof(kv_step_input)));
    KV_CHECK(at->reserved == 0, KV_UNSUPPORTED, "the reserved field of inputs[%zu] is %u, not 0", i, at->reserved);
    own.push_back({at->sequence, at->tokens, at->rows, at->count});
  }
  *out = std::move(own);
  return {};
}

}  // namespace

extern "C" {

kv_status kv_step(kv_context* context, const kv_step_input* inputs, size_t count, const kv_step_options* options,
                  kv_step_result* results, kv_error* error) {
  return context_call(context, error, [&](Context& c) -> Status {
    KV_CHECK(count <= c.max_sequences(), KV_INVALID_ARGUMENT,
             "%zu inputs in a step: this context takes %u (max_sequences)", count, c.max_sequences());
    std::vector<Context::Input> own;
    KV_RETURN_IF_ERROR(copy_inputs(inputs, count, &own));
    return run(context, own, options, results);
  });
}

kv_status kv_prefill(kv_context* context, kv_sequence sequence, const int32_t* tokens, size_t count,
                     const kv_step_options* options, kv_step_result* result, kv_error* error) {
  return context_call(context, error, [&](Context&) -> Status {
    KV_CHECK(tokens != nullptr, KV_INVALID_ARGUMENT, "tokens is NULL, count %zu", count);
    const Context::Input input = {sequence, tokens, nullptr, count};
    return run(context, {&input, 1}, options, result);
  });
}

kv_status kv_decode_step(kv_context* context, const kv_decode_input* inputs, size_t count,
                         const kv_step_options* options, kv_step_result* results, kv_error* error) {
  return context_call(context, error, [&](Context& c) -> Status {
    KV_CHECK(inputs != nullptr || count == 0, KV_INVALID_ARGUMENT, "inputs is NULL, count %zu", count);
    KV_CHECK(count <= c.max_sequences(), KV_INVALID_ARGUMENT,
             "%zu inputs in a step: this context takes %u (max_sequences)", count, c.max_sequences());
    std::vector<Context::Input> own;
    own.reserve(count);
    for (size_t i = 0; i < count; i++) {
      KV_CHECK(inputs[i].reserved == 0, KV_UNSUPPORTED, "the reserved field of inputs[%zu] is %u, not 0", i,
               inputs[i].reserved);
      own.push_back({inputs[i].sequence, &inputs[i].token, nullptr, 1});
    }
    return run(context, own, options, results);
  });
}

}  // extern "C"
