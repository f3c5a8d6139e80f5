// SPDX-License-Identifier: MIT
//
// Backends that break one obligation each: the reference backend behind a table in which one function was replaced.
// Which one is told by the name of the file that the plugin is opened as, libkvasir_backend_<fault>.v0.so. The tests of
// kvasir-backend-test open it under all these names.
#include <dlfcn.h>
#include <unistd.h>

#include <cfenv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "kvasir/backend.h"

extern "C" const kvb_api* kv_backend_query_v0_ref(const kvb_host* host, kv_error* error);

namespace {

const kvb_api* ref = nullptr;  // the good table

void crash() { raise(SIGSEGV); }

kv_status crash_on_poison(kvb_queue*, kvb_cache*, uint32_t, uint32_t, kv_error*) {
  crash();
  return KV_OK;
}

kv_status hang_on_copy(kvb_queue*, kvb_cache*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, kv_error*) {
  while (true) pause();
}

kv_status query_exits(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error) {
  if (key == 0) _exit(3);
  return ref->device_query(device, key, out, error);
}

kv_status query_throws(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error) {
  if (key == 0) throw std::runtime_error("thrown across the table");
  return ref->device_query(device, key, out, error);
}

kv_status info_prints(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error) {
  if (index != 0) std::fprintf(stderr, "no device %u\n", index);
  return ref->device_info(instance, index, out, error);
}

kv_status no_sentence(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error) {
  const kv_status status = ref->device_query(device, key, out, error);
  if (status != KV_OK && error != nullptr) error->message[0] = '\0';
  return status;
}

kv_status count_none(kvb_instance*, uint32_t* out, char* reason, size_t capacity, kv_error*) {
  *out = 0;
  if (reason != nullptr) std::snprintf(reason, capacity, "the machine has no such processor");
  return KV_OK;
}

kv_status count_none_silently(kvb_instance*, uint32_t* out, char*, size_t, kv_error*) {
  *out = 0;
  return KV_OK;
}

kv_status handler_create(const kvb_host* host, kvb_instance** out, kv_error* error) {
  std::signal(SIGUSR2, [](int) {});
  return ref->instance_create(host, out, error);
}

// ---- weights

std::vector<kvb_weight*> kept;

kv_status leak_create(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  const kv_status status = ref->weight_create(device, desc, out, error);
  if (status == KV_OK && desc->type == KV_TYPE_Q5_1) kept.push_back(*out);
  return status;
}
void leak_destroy(kvb_weight* weight) {
  for (const kvb_weight* one : kept) {
    if (one == weight) return;
  }
  ref->weight_destroy(weight);
}

kv_status wrong_prediction(kvb_device* device, const kvb_weight_desc* desc, kvb_memory* out, kv_error* error) {
  const kv_status status = ref->weight_memory(device, desc, out, error);
  if (status == KV_OK && desc->type == KV_TYPE_Q5_0) out->device_bytes += 64;
  return status;
}

kv_status tail_unread(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  if (desc == nullptr || desc->struct_size <= sizeof *desc) return ref->weight_create(device, desc, out, error);
  kvb_weight_desc known = *desc;
  known.struct_size = sizeof known;
  return ref->weight_create(device, &known, out, error);
}

kv_status second_release(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  const kv_status status = ref->weight_create(device, desc, out, error);
  if (status != KV_OK && desc != nullptr && desc->release != nullptr) desc->release(desc->release_user);
  return status;
}

kv_status null_weight_accepted(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error) {
  kvb_weight_desc repaired = *desc;
  static const char nothing[4096] = {};
  if (repaired.data == nullptr) repaired.data = nothing;
  return ref->weight_create(device, &repaired, out, error);
}

// ---- the host's allocator

kv_allocator host_allocator;

void* pass_alloc(void* user, size_t size, size_t align) { return host_allocator.alloc(user, size, align); }
void release_wrongly(void* user, void* memory, size_t size, size_t align) {
  host_allocator.release(user, memory, size == 396 ? 395 : size, align);
}

kv_status wrong_release(const kvb_host* host, kvb_instance** out, kv_error* error) {
  kvb_host other = *host;
  host_allocator = host->allocator;
  other.allocator.alloc = pass_alloc;
  other.allocator.release = release_wrongly;
  return ref->instance_create(&other, out, error);
}

// ---- cache

std::mutex geometry_lock;
std::map<const kvb_cache*, kvb_cache_group> geometry;

// That of a known cache; else all zero.
kvb_cache_group geometry_of(const kvb_cache* cache) {
  const std::lock_guard lock(geometry_lock);
  const auto found = geometry.find(cache);
  return found == geometry.end() ? kvb_cache_group{} : found->second;
}

kv_status remember_cache(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error) {
  const kv_status status = ref->cache_create(device, desc, out, error);
  const std::lock_guard lock(geometry_lock);
  if (status == KV_OK && desc->group_count > 0) geometry[*out] = desc->groups[0];
  return status;
}
void forget_cache(kvb_cache* cache) {
  {
    const std::lock_guard lock(geometry_lock);
    geometry.erase(cache);
  }
  ref->cache_destroy(cache);
}

kv_status forgetful_resize(kvb_queue* queue, kvb_cache* cache, const uint32_t* counts, kv_error* error) {
  const std::vector<uint32_t> none(16);
  const kv_status status = counts == nullptr ? KV_OK : ref->cache_resize(queue, cache, none.data(), error);
  return status == KV_OK ? ref->cache_resize(queue, cache, counts, error) : status;
}

kv_status careless_write(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, const void* data,
                         uint64_t bytes, kv_error* error) {
  if (data == nullptr) return ref->cache_write_rows(queue, cache, rows, data, bytes, error);
  std::vector<unsigned char> copy(static_cast<const unsigned char*>(data),
                                  static_cast<const unsigned char*>(data) + bytes);
  const bool keys = rows->what == KVB_ROWS_K && rows->count > 0 && geometry_of(cache).k_type == KV_TYPE_BF16;
  if (keys && bytes > 1) copy[0] ^= 1;  // the last bit of the first element
  return ref->cache_write_rows(queue, cache, rows, copy.data(), bytes, error);
}

// ---- steps

kv_status wrong_sum(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                    uint64_t floats, uint64_t* ticket, kv_error* error) {
  const kv_status status = ref->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  if (status == KV_OK && floats > 0) out[0] += 0.125f;
  return status;
}

kv_status write_on_failure(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                           uint64_t floats, uint64_t* ticket, kv_error* error) {
  const kv_status status = ref->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  if (status == KV_INVALID_ARGUMENT && out != nullptr && floats > 0) out[0] = 0;
  return status;
}

kv_status falling_tickets(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                          uint64_t floats, uint64_t* ticket, kv_error* error) {
  const kv_status status = ref->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  if (status == KV_OK) *ticket = (uint64_t{1} << 40) - *ticket;
  return status;
}
kv_status wait_falling(kvb_queue* queue, uint64_t ticket, uint64_t timeout, kv_error* error) {
  return ref->queue_wait(queue, (uint64_t{1} << 40) - ticket, timeout, error);
}

kv_status rounding_lost(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                        uint64_t floats, uint64_t* ticket, kv_error* error) {
  const kv_status status = ref->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  std::fesetround(FE_TOWARDZERO);
  return status;
}

kv_status deaf_submit(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                      uint64_t floats, uint64_t* ticket, kv_error* error) {
  kvb_step copy{};
  if (step != nullptr) std::memcpy(&copy, step, step->struct_size < sizeof copy ? step->struct_size : sizeof copy);
  copy.stop = nullptr;
  return ref->queue_submit(queue, program, cache, step == nullptr ? nullptr : &copy, out, floats, ticket, error);
}

// Adds zero times the first key of every page that is in no table: 0 x NaN shows.
kv_status unowned_read(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                       uint64_t floats, uint64_t* ticket, kv_error* error) {
  const kv_status status = ref->queue_submit(queue, program, cache, step, out, floats, ticket, error);
  const kvb_cache_group group = geometry_of(cache);
  if (status != KV_OK || floats == 0 || group.kv_heads == 0) return status;
  std::vector<float> row(size_t{group.kv_heads} * group.k_dim);
  for (uint32_t page = 0;; ++page) {
    const kvb_cache_rows rows{sizeof rows, 0, KVB_ROWS_K, KVB_FORMAT_F32, page, 0, 1, 0};
    if (ref->cache_read_rows(queue, cache, &rows, row.data(), row.size() * sizeof(float), nullptr) != KV_OK) break;
    bool owned = false;
    for (uint32_t i = 0; i < step->sequence_count * step->tables[0].pages_per_sequence; ++i) {
      owned = owned || step->tables[0].pages[i] == page;
    }
    if (!owned) out[0] += 0 * row[0];
  }
  return status;
}

// ---- programs

kv_status wrong_op_named(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                         uint32_t* first_unsupported, kv_error* error) {
  const kv_status status = ref->program_check(device, desc, cache, first_unsupported, error);
  if (status == KV_UNSUPPORTED && *first_unsupported != KVB_NONE) ++*first_unsupported;
  return status;
}

void crash_on_null(kvb_queue* queue) {
  if (queue == nullptr) crash();
  ref->queue_destroy(queue);
}

// ---- which fault

using Break = void (*)(kvb_api&);

const std::map<std::string, Break>& faults() {
  static const std::map<std::string, Break> all = {
      {"good", [](kvb_api&) {}},
      {"hole", [](kvb_api& api) { api.cache_poison_page = nullptr; }},
      {"crash", [](kvb_api& api) { api.cache_poison_page = crash_on_poison; }},
      {"hang", [](kvb_api& api) { api.cache_copy_rows = hang_on_copy; }},
      {"exits", [](kvb_api& api) { api.device_query = query_exits; }},
      {"throws", [](kvb_api& api) { api.device_query = query_throws; }},
      {"prints", [](kvb_api& api) { api.device_info = info_prints; }},
      {"silent", [](kvb_api& api) { api.device_query = no_sentence; }},
      {"nodevice", [](kvb_api& api) { api.device_count = count_none; }},
      {"noreason", [](kvb_api& api) { api.device_count = count_none_silently; }},
      {"handler", [](kvb_api& api) { api.instance_create = handler_create; }},
      {"leaks", [](kvb_api& api) { api.weight_create = leak_create, api.weight_destroy = leak_destroy; }},
      {"prediction", [](kvb_api& api) { api.weight_memory = wrong_prediction; }},
      {"tail", [](kvb_api& api) { api.weight_create = tail_unread; }},
      {"release", [](kvb_api& api) { api.weight_create = second_release; }},
      {"nulldata", [](kvb_api& api) { api.weight_create = null_weight_accepted; }},
      {"wrongfree", [](kvb_api& api) { api.instance_create = wrong_release; }},
      {"forgets", [](kvb_api& api) { api.cache_resize = forgetful_resize; }},
      {"careless",
       [](kvb_api& api) {
         api.cache_create = remember_cache, api.cache_destroy = forget_cache, api.cache_write_rows = careless_write;
       }},
      {"wrongsum", [](kvb_api& api) { api.queue_submit = wrong_sum; }},
      {"writes", [](kvb_api& api) { api.queue_submit = write_on_failure; }},
      {"tickets", [](kvb_api& api) { api.queue_submit = falling_tickets, api.queue_wait = wait_falling; }},
      {"rounding", [](kvb_api& api) { api.queue_submit = rounding_lost; }},
      {"deaf", [](kvb_api& api) { api.queue_submit = deaf_submit; }},
      {"unowned",
       [](kvb_api& api) {
         api.cache_create = remember_cache, api.cache_destroy = forget_cache, api.queue_submit = unowned_read;
       }},
      {"wrongop", [](kvb_api& api) { api.program_check = wrong_op_named; }},
      {"nullcrash", [](kvb_api& api) { api.queue_destroy = crash_on_null; }},
  };
  return all;
}

// "crash" from ".../libkvasir_backend_crash.v0.so".
std::string own_name() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_name), &info) == 0) return "";
  const std::string path = info.dli_fname, prefix = "libkvasir_backend_";
  const size_t found = path.rfind(prefix);
  if (found == std::string::npos) return "";  // a copy that the suite made
  const size_t start = found + prefix.size();
  return path.substr(start, path.find(".v0.so", start) - start);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const kvb_api* kv_backend_query_v0(const kvb_host* host,
                                                                                     kv_error* error);

extern "C" const kvb_api* kv_backend_query_v0(const kvb_host* host, kv_error* error) {
  static const std::string name = own_name();
  static kvb_api api;
  static const bool ready = [host, error] {
    if (name == "badquery") crash();
    ref = kv_backend_query_v0_ref(host, error);
    if (ref == nullptr) return false;
    api = *ref;
    api.name = name.c_str();
    const auto fault = faults().find(name);
    if (fault != faults().end()) fault->second(api);
    return true;
  }();
  const kvb_api* judged = kv_backend_query_v0_ref(host, error);
  return judged == nullptr || !ready ? nullptr : &api;
}
