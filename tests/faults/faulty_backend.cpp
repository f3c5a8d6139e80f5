// SPDX-License-Identifier: MIT
//
// The wrapped tables. A call that fails without doing its work leaves everything alone; of the calls that may fail late
// only those are made so that the ABI allows to have had an effect: a step that was submitted.
#include "faults/faulty_backend.h"

#include <cstdio>

#include "loader/static_table.h"
#include "support/backend_harness.h"

namespace kvasir::test {

BackendFault backend_fault;

namespace {

constexpr const char* kNames[] = {"faulty_ref", "faulty_cpu"};
constexpr const char* kWrapped[] = {"ref", "cpu"};
const kvb_api* wrapped[2];

bool due() {
  if (backend_fault.calls_left == 0 || --backend_fault.calls_left != 0) return false;
  backend_fault.fired = true;
  return true;
}

kv_status fail(const char* call, kv_error* error) {
  if (error != nullptr) {
    error->code = backend_fault.status;
    std::snprintf(error->message, sizeof error->message, "%s was made to fail", call);
  }
  return backend_fault.status;
}

template <int B>
struct Wrapper {
  static kv_status weight_create(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
    if (due()) {
      if (desc->release != nullptr) desc->release(desc->release_user);
      return fail("weight_create", error);
    }
    return wrapped[B]->weight_create(device, desc, out, error);
  }
  static kv_status cache_create(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error) {
    return due() ? fail("cache_create", error) : wrapped[B]->cache_create(device, desc, out, error);
  }
  static kv_status cache_resize(kvb_queue* queue, kvb_cache* cache, const uint32_t* counts, kv_error* error) {
    return due() ? fail("cache_resize", error) : wrapped[B]->cache_resize(queue, cache, counts, error);
  }
  static kv_status cache_copy_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t from, uint32_t to,
                                   uint32_t first, uint32_t count, kv_error* error) {
    return due() ? fail("cache_copy_rows", error)
                 : wrapped[B]->cache_copy_rows(queue, cache, group, from, to, first, count, error);
  }
  static kv_status cache_read_rows(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, void* data,
                                   uint64_t bytes, kv_error* error) {
    return due() ? fail("cache_read_rows", error) : wrapped[B]->cache_read_rows(queue, cache, rows, data, bytes, error);
  }
  static kv_status program_compile(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                                   kvb_weight* const* weights, uint32_t count, kvb_program** out, kv_error* error) {
    return due() ? fail("program_compile", error)
                 : wrapped[B]->program_compile(device, desc, cache, weights, count, out, error);
  }
  static kv_status queue_create(kvb_device* device, const kvb_queue_options* options, kvb_queue** out,
                                kv_error* error) {
    return due() ? fail("queue_create", error) : wrapped[B]->queue_create(device, options, out, error);
  }
  static kv_status queue_submit(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step,
                                float* out, uint64_t floats, uint64_t* ticket, kv_error* error) {
    if (due()) {
      // Late: rows are written and no ticket is given.
      uint64_t unused = 0;
      const bool ran = backend_fault.late &&
                       wrapped[B]->queue_submit(queue, program, cache, step, out, floats, &unused, nullptr) == KV_OK;
      if (ran) wrapped[B]->queue_wait(queue, unused, KVB_WAIT_FOREVER, nullptr);
      return fail("queue_submit", error);
    }
    return wrapped[B]->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  }
  static kv_status queue_wait(kvb_queue* queue, uint64_t ticket, uint64_t timeout, kv_error* error) {
    const kv_status status = wrapped[B]->queue_wait(queue, ticket, timeout, error);
    return status == KV_OK && due() ? fail("queue_wait", error) : status;
  }

  static const kvb_api* query(const kvb_host* host, kv_error* error) {
    static kvb_api api = {};
    if (api.struct_size != 0) return &api;
    const kvb_query_fn entry = testing::find_plugin(kWrapped[B]);
    wrapped[B] = entry != nullptr ? entry(host, error) : nullptr;
    if (wrapped[B] == nullptr) return nullptr;
    api = *wrapped[B];
    api.name = kNames[B];
    api.weight_create = weight_create;
    api.cache_create = cache_create;
    api.cache_resize = cache_resize;
    api.cache_copy_rows = cache_copy_rows;
    api.cache_read_rows = cache_read_rows;
    api.program_compile = program_compile;
    api.queue_create = queue_create;
    api.queue_submit = queue_submit;
    api.queue_wait = queue_wait;
    return &api;
  }
};

}  // namespace
}  // namespace kvasir::test

// Instead of the empty table of the library.
extern const kvasir::StaticBackend kvasir_static_backends[] = {
    {kvasir::test::kNames[0], kvasir::test::Wrapper<0>::query},
    {kvasir::test::kNames[1], kvasir::test::Wrapper<1>::query},
};
extern const size_t kvasir_static_backend_count = 2;
