// SPDX-License-Identifier: MIT
//
// Operations on a context and its sequences. The world's context has pages of 4 tokens, internal batches of 5, and the
// sequences 0 (6 tokens), 1 (a fork of it, so its last page is shared) and 2 (empty).
#include "faults/injector.h"
#include "faults/operations.h"

namespace kvasir::test {
namespace {

std::vector<int32_t> tokens_of(size_t count) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; i++) tokens.push_back(static_cast<int32_t>(i * 5 % 16));
  return tokens;
}

void yield_rows(World& w, const std::vector<kv_step_result>& results) {
  for (const kv_step_result& result : results) {
    w.yield(&result.length, 1);
    if (result.rows != nullptr) w.yield(result.rows, result.width);
  }
}

std::function<kv_status(World&, kv_error*)> prefill_of(kv_sequence sequence, size_t count) {
  return [=](World& w, kv_error* error) {
    const std::vector<int32_t> tokens = tokens_of(count);
    std::vector<kv_step_result> results(1, sized<kv_step_result>());
    const kv_status status = failing([&] {
      return kv_prefill(w.context.get(), sequence, tokens.data(), tokens.size(), nullptr, results.data(), error);
    });
    if (status == KV_OK) yield_rows(w, results);
    return status;
  };
}

kv_status decode_three(World& w, kv_error* error) {
  const kv_decode_input inputs[] = {{0, 3, 0}, {1, 4, 0}, {2, 5, 0}};
  std::vector<kv_step_result> results(3, sized<kv_step_result>());
  const kv_status status =
      failing([&] { return kv_decode_step(w.context.get(), inputs, 3, nullptr, results.data(), error); });
  // An input may fail alone; the others are then done, which is no failure without a trace.
  const bool none = results[0].status != KV_OK && results[1].status != KV_OK && results[2].status != KV_OK;
  const bool untouched = results[0].message == nullptr;
  if (status == KV_OK) yield_rows(w, results);
  if (status != KV_OK && !none && !untouched) {
    for (size_t i = 0; i < 3; i++) {
      if (results[i].status != KV_OK) continue;
      EXPECT_EQ(kv_sequence_truncate(w.context.get(), inputs[i].sequence, results[i].length - 1, nullptr), KV_OK);
    }
    w.undone = true;
  }
  return status;
}

kv_status mixed_step(World& w, uint32_t outputs, kv_error* error) {
  const std::vector<int32_t> tokens = tokens_of(9);
  const std::vector<float> rows(16, 0.25F);
  const int32_t with_rows[] = {KV_TOKEN_ROW, 7, KV_TOKEN_ROW};
  std::vector<kv_step_input> inputs(2, sized<kv_step_input>());
  inputs[0].sequence = 2;
  inputs[0].tokens = tokens.data();
  inputs[0].count = 9;
  inputs[1].sequence = 1;
  inputs[1].tokens = with_rows;
  inputs[1].rows = rows.data();
  inputs[1].count = 3;
  kv_step_options options = sized<kv_step_options>();
  options.outputs = outputs;
  std::vector<float> seen;
  options.row_user = &seen;
  options.row = [](void* user, kv_sequence, uint64_t, const float* row, uint32_t) {
    static_cast<std::vector<float>*>(user)->push_back(*row);
  };
  seen.reserve(32);
  std::vector<kv_step_result> results(2, sized<kv_step_result>());
  const kv_status status =
      failing([&] { return kv_step(w.context.get(), inputs.data(), 2, &options, results.data(), error); });
  if (status == KV_OK) yield_rows(w, results);
  if (status == KV_OK) w.yield(seen.data(), seen.size());
  if (status != KV_OK && (results[0].status == KV_OK) != (results[1].status == KV_OK)) {
    const size_t done = results[0].status == KV_OK ? 0 : 1;
    const uint64_t before = results[done].length - inputs[done].count;
    EXPECT_EQ(kv_sequence_truncate(w.context.get(), inputs[done].sequence, before, nullptr), KV_OK);
    w.undone = true;
  }
  return status;
}

kv_status fork(World& w, kv_error* error) {
  kv_sequence made = 99;
  const kv_status status = failing([&] { return kv_sequence_fork(w.context.get(), 0, 5, &made, error); });
  EXPECT_EQ(made == 99, status != KV_OK);
  if (status == KV_OK) w.yield(&made, 1);
  return status;
}

kv_status create_sequence(World& w, kv_error* error) {
  kv_sequence made = 99;
  const kv_status status = failing([&] { return kv_sequence_create(w.context.get(), &made, error); });
  EXPECT_EQ(made == 99, status != KV_OK);
  if (status == KV_OK) w.yield(&made, 1);
  return status;
}

kv_status read_cache(World& w, kv_error* error) {
  float rows[24] = {};
  const kv_status status =
      failing([&] { return kv_cache_read(w.context.get(), 0, 1, KV_CACHE_K, 0, 6, rows, 24, error); });
  if (status == KV_OK) w.yield(rows, 24);
  return status;
}

kv_status get_info(World& w, kv_error* error) {
  kv_context_info info = sized<kv_context_info>();
  int32_t tokens[6] = {};
  const kv_status status = failing([&] { return kv_context_get_info(w.context.get(), &info, error); });
  if (status != KV_OK) return status;
  return failing([&] { return kv_sequence_tokens(w.context.get(), 0, 0, 6, tokens, error); });
}

void ignore_trace(void*, const kv_trace_record*) {}

kv_status set_trace(World& w, kv_error* error) {
  return failing([&] { return kv_context_set_trace(w.context.get(), ignore_trace, nullptr, error); });
}

void with_trace(World& w) {
  Error e;
  OK(set_trace(w, &e));
}

}  // namespace

std::vector<Operation> context_operations() {
  return {
      {"prefill_1", Stage::kContext, prefill_of(2, 1)},
      {"prefill_5", Stage::kContext, prefill_of(2, 5)},
      {"prefill_9_on_shared_page", Stage::kContext, prefill_of(1, 9)},
      {"prefill_40", Stage::kContext, prefill_of(0, 40)},
      {"decode_three", Stage::kContext, decode_three},
      {"step_mixed", Stage::kContext, [](World& w, kv_error* e) { return mixed_step(w, KV_OUTPUT_LAST, e); }},
      {"step_all_rows", Stage::kContext, [](World& w, kv_error* e) { return mixed_step(w, KV_OUTPUT_ALL, e); }},
      {"step_traced", Stage::kContext, [](World& w, kv_error* e) { return mixed_step(w, KV_OUTPUT_LAST, e); },
       with_trace},
      {"fork", Stage::kContext, fork},
      {"sequence_create", Stage::kContext, create_sequence},
      {"truncate", Stage::kContext,
       [](World& w, kv_error* e) { return failing([&] { return kv_sequence_truncate(w.context.get(), 1, 3, e); }); }},
      {"sequence_release", Stage::kContext,
       [](World& w, kv_error* e) { return failing([&] { return kv_sequence_release(w.context.get(), 0, e); }); }},
      {"cache_read", Stage::kContext, read_cache},
      {"info_and_tokens", Stage::kContext, get_info},
      {"set_trace", Stage::kContext, set_trace},
  };
}

}  // namespace kvasir::test
