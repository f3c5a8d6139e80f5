// SPDX-License-Identifier: MIT
//
// The table of the cpu backend: every function of backend.h, its exception barrier, and the casts between handles and
// classes. Nothing is decided here.
#include <memory>

#include "cache.h"
#include "device.h"
#include "program.h"
#include "queue.h"
#include "sdk/entry.h"
#include "sdk/errors.h"
#include "sdk/handle.h"
#include "weight.h"

namespace kvasir::cpu {
namespace {

using sdk::guard;
using sdk::object_of;

kv_status missing(kv_error* error, const char* what) {
  return sdk::fail(error, KV_INVALID_ARGUMENT, "the %s is NULL", what);
}

// Runs body(object) behind the barrier; a NULL handle is refused.
template <class Object, class Handle, class Body>
kv_status with(Handle* handle, const char* what, kv_error* error, Body&& body) {
  return guard(error, [&]() -> kv_status {
    if (handle == nullptr) return missing(error, what);
    return body(*object_of<Object>(handle));
  });
}

// body(create into Object*), then the handle is handed out.
template <class Object, class Handle, class Create>
kv_status hand_out(Handle** out, kv_error* error, Create&& create) {
  if (out == nullptr) return missing(error, "place for the result");
  Object* object = nullptr;
  KV_TRY(create(&object));
  *out = sdk::handle_of<Handle>(object);
  return KV_OK;
}

kv_status api_instance_create(const kvb_host* host, kvb_instance** out, kv_error* error) {
  return guard(error, [&]() -> kv_status {
    if (out == nullptr) return missing(error, "place for the result");
    auto instance = std::make_unique<Instance>();
    KV_TRY(sdk::read_host(host, &instance->host, error));
    *out = sdk::handle_of<kvb_instance>(instance.release());
    return KV_OK;
  });
}

void api_instance_destroy(kvb_instance* instance) { delete object_of<Instance>(instance); }

kv_status api_device_count(kvb_instance* instance, uint32_t* out, char* reason, size_t capacity, kv_error* error) {
  return with<Instance>(instance, "instance", error,
                        [&](Instance&) { return device_count(out, reason, capacity, error); });
}

kv_status api_device_info(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error) {
  return with<Instance>(instance, "instance", error, [&](Instance&) { return device_info(index, out, error); });
}

kv_status api_device_open(kvb_instance* instance, uint32_t index, const kvb_device_options* options, kvb_device** out,
                          kv_error* error) {
  return with<Instance>(instance, "instance", error, [&](Instance& owner) {
    return hand_out<Device>(out, error,
                            [&](Device** device) { return device_open(owner, index, options, device, error); });
  });
}

void api_device_close(kvb_device* device) { delete object_of<Device>(device); }

kv_status api_device_query(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device& known) { return device_query(known, key, out, error); });
}

const char* api_device_variant(kvb_device* device) {
  return device == nullptr ? "" : object_of<Device>(device)->kernels.name;
}

kv_status api_weight_memory(kvb_device* device, const kvb_weight_desc* desc, kvb_memory* out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device&) { return weight_memory(desc, out, error); });
}

kv_status api_weight_create(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device& owner) {
    return hand_out<Weight>(out, error, [&](Weight** weight) { return weight_create(owner, desc, weight, error); });
  });
}

void api_weight_destroy(kvb_weight* weight) { delete object_of<Weight>(weight); }

kv_status api_cache_memory(kvb_device* device, const kvb_cache_desc* desc, const uint32_t* page_counts, kvb_memory* out,
                           kv_error* error) {
  return with<Device>(device, "device", error, [&](Device&) { return cache_memory(desc, page_counts, out, error); });
}

kv_status api_cache_create(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device& owner) {
    return hand_out<Cache>(out, error, [&](Cache** cache) { return cache_create(owner, desc, cache, error); });
  });
}

void api_cache_destroy(kvb_cache* cache) { delete object_of<Cache>(cache); }

// A cache call on a queue: everything submitted before has finished already, since submit runs the step.
template <class Body>
kv_status on_cache(kvb_queue* queue, kvb_cache* cache, kv_error* error, Body&& body) {
  return with<Queue>(queue, "queue", error, [&](Queue& known) -> kv_status {
    if (cache == nullptr) return missing(error, "cache");
    KV_TRY(known.check_process(error));
    Cache& object = *object_of<Cache>(cache);
    KV_REQUIRE(&object.device() == &known.device(), error, KV_INVALID_ARGUMENT, "cache and queue are of two devices");
    return body(object);
  });
}

kv_status api_cache_resize(kvb_queue* queue, kvb_cache* cache, const uint32_t* page_counts, kv_error* error) {
  return on_cache(queue, cache, error, [&](Cache& known) { return known.resize(page_counts, error); });
}

kv_status api_cache_copy_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t from, uint32_t to,
                              uint32_t first, uint32_t count, kv_error* error) {
  return on_cache(queue, cache, error,
                  [&](Cache& known) { return known.copy_rows(group, from, to, first, count, error); });
}

kv_status api_cache_poison_page(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t page, kv_error* error) {
  return on_cache(queue, cache, error, [&](Cache& known) { return known.poison_page(group, page, error); });
}

kv_status api_cache_read_rows(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, void* data,
                              uint64_t bytes, kv_error* error) {
  return on_cache(queue, cache, error, [&](Cache& known) { return known.read_rows(rows, data, bytes, error); });
}

kv_status api_cache_write_rows(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, const void* data,
                               uint64_t bytes, kv_error* error) {
  return on_cache(queue, cache, error, [&](Cache& known) { return known.write_rows(rows, data, bytes, error); });
}

kv_status api_cache_move_rows(kvb_queue* queue, kvb_cache* cache, uint32_t group, const kvb_cache_move* moves,
                              uint32_t count, const kvb_rope* const* rope, kv_error* error) {
  return on_cache(queue, cache, error, [&](Cache& known) { return known.move_rows(group, moves, count, rope, error); });
}

kv_status api_program_check(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                            uint32_t* first_unsupported, kv_error* error) {
  return with<Device>(device, "device", error,
                      [&](Device& known) { return program_check(known, desc, cache, first_unsupported, error); });
}

kv_status api_program_memory(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                             kvb_memory* out, kv_error* error) {
  return with<Device>(device, "device", error,
                      [&](Device& known) { return program_memory(known, desc, cache, out, error); });
}

kv_status api_program_compile(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                              kvb_weight* const* weights, uint32_t weight_count, kvb_program** out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device& owner) {
    return hand_out<Program>(out, error, [&](Program** program) {
      return program_compile(owner, desc, cache, weights, weight_count, program, error);
    });
  });
}

void api_program_destroy(kvb_program* program) { delete object_of<Program>(program); }

kv_status api_queue_create(kvb_device* device, const kvb_queue_options* options, kvb_queue** out, kv_error* error) {
  return with<Device>(device, "device", error, [&](Device& owner) {
    return hand_out<Queue>(out, error, [&](Queue** queue) { return queue_create(owner, options, queue, error); });
  });
}

void api_queue_destroy(kvb_queue* queue) { delete object_of<Queue>(queue); }

kv_status api_queue_submit(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                           uint64_t out_floats, uint64_t* out_ticket, kv_error* error) {
  return with<Queue>(queue, "queue", error, [&](Queue& known) -> kv_status {
    if (program == nullptr) return missing(error, "program");
    if (cache == nullptr) return missing(error, "cache");
    if (out_ticket == nullptr) return missing(error, "place for the ticket");
    kvb_step copy{};
    KV_TRY(sdk::read_struct(step, "the step", &copy, error));
    return known.submit(*object_of<Program>(program), *object_of<Cache>(cache), copy, out, out_floats, out_ticket,
                        error);
  });
}

kv_status api_queue_wait(kvb_queue* queue, uint64_t ticket, uint64_t /*timeout_ns*/, kv_error* error) {
  return with<Queue>(queue, "queue", error, [&](Queue& known) { return known.wait(ticket, error); });
}

const void* api_extension(const char* /*name*/) { return nullptr; }

constexpr kvb_api make_api() {
  kvb_api api{};
  api.struct_size = sizeof api;
  api.abi_version = KVB_ABI_VERSION;
  api.name = "cpu";
  api.version = "0.1.0";
  api.instance_create = api_instance_create;
  api.instance_destroy = api_instance_destroy;
  api.device_count = api_device_count;
  api.device_info = api_device_info;
  api.device_open = api_device_open;
  api.device_close = api_device_close;
  api.device_query = api_device_query;
  api.device_variant = api_device_variant;
  api.weight_memory = api_weight_memory;
  api.weight_create = api_weight_create;
  api.weight_destroy = api_weight_destroy;
  api.cache_memory = api_cache_memory;
  api.cache_create = api_cache_create;
  api.cache_destroy = api_cache_destroy;
  api.cache_resize = api_cache_resize;
  api.cache_copy_rows = api_cache_copy_rows;
  api.cache_poison_page = api_cache_poison_page;
  api.cache_read_rows = api_cache_read_rows;
  api.cache_write_rows = api_cache_write_rows;
  api.cache_move_rows = api_cache_move_rows;
  api.program_check = api_program_check;
  api.program_memory = api_program_memory;
  api.program_compile = api_program_compile;
  api.program_destroy = api_program_destroy;
  api.queue_create = api_queue_create;
  api.queue_destroy = api_queue_destroy;
  api.queue_submit = api_queue_submit;
  api.queue_wait = api_queue_wait;
  api.extension = api_extension;
  return api;
}

constexpr kvb_api kApi = make_api();

}  // namespace
}  // namespace kvasir::cpu

KVB_DEFINE_BACKEND(cpu, ::kvasir::cpu::kApi)
