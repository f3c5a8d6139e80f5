// SPDX-License-Identifier: MIT
//
// Group faults: malformed programs and steps, structs of other sizes, missing handles, memory that runs out inside one
// call. Each time: a status, a sentence, nothing written, and the next call works.
#include "suite/faults.h"

namespace kvasir::conformance {
namespace {

// ---- structs of other sizes

template <typename T>
struct Longer {
  T value;
  uint64_t tail[2];
};

template <typename T>
Longer<T> longer(const T& value) {
  Longer<T> result{value, {0, 0}};
  result.value.struct_size = sizeof result;
  return result;
}

// `call` accepts a longer struct with a zero tail and refuses one whose tail is used, or whose size is 0.
template <typename T>
void sizes_of(const char* what, const T& good, const std::function<kv_status(const T*, kv_error*)>& call) {
  Longer<T> future = longer(good);
  succeeds(std::string(what) + " with a longer struct", [&](kv_error* e) { return call(&future.value, e); });
  future.tail[1] = 1;
  refuses(std::string(what) + " with a longer struct whose tail is used", {KV_UNSUPPORTED},
          [&](kv_error* e) { return call(&future.value, e); });
  T empty = good;
  empty.struct_size = 0;
  refuses(std::string(what) + " with a struct of size 0", {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return call(&empty, e); });
  refuses(std::string(what) + " with struct NULL", {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return call(nullptr, e); });
}

void struct_sizes(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  const kvb_api& api = world.api();
  kvb_device* device = world.device.get();
  const kvb_cache_desc cache = world.spec.desc();
  const kvb_program_desc program = world.builder.desc();

  const std::vector<float> data(32, 1.0f);
  const kvb_weight_desc weight{sizeof weight, KV_TYPE_F32, 1, 2, 16, 0, data.data(), 128, nullptr, nullptr};
  sizes_of<kvb_weight_desc>("weight_create", weight, [&](const kvb_weight_desc* desc, kv_error* e) {
    kvb_weight* made = nullptr;
    const kv_status status = api.weight_create(device, desc, &made, e);
    api.weight_destroy(made);
    return status;
  });
  sizes_of<kvb_cache_desc>("cache_create", cache, [&](const kvb_cache_desc* desc, kv_error* e) {
    kvb_cache* made = nullptr;
    const kv_status status = api.cache_create(device, desc, &made, e);
    api.cache_destroy(made);
    return status;
  });
  sizes_of<kvb_program_desc>("program_check", program, [&](const kvb_program_desc* desc, kv_error* e) {
    uint32_t first = 0;
    return api.program_check(device, desc, &cache, &first, e);
  });
  sizes_of<kvb_cache_desc>("program_check's cache", cache, [&](const kvb_cache_desc* desc, kv_error* e) {
    uint32_t first = 0;
    return api.program_check(device, &program, desc, &first, e);
  });
  std::vector<float> row(SmallModel::kKvHeads * SmallModel::kHeadDim);
  const kvb_cache_rows rows{sizeof rows, 0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1, 0};
  sizes_of<kvb_cache_rows>("cache_read_rows", rows, [&](const kvb_cache_rows* given, kv_error* e) {
    return api.cache_read_rows(world.queue.get(), world.cache.get(), given, row.data(), row.size() * 4, e);
  });
  world.reset();
  sizes_of<kvb_step>("queue_submit", world.data.view(), [&](const kvb_step* step, kv_error* e) {
    uint64_t ticket = 0;
    const kv_status status = api.queue_submit(world.queue.get(), world.program->get(), world.cache.get(), step,
                                              world.out.data(), world.out.size(), &ticket, e);
    if (status == KV_OK) world.wait(ticket);
    return status;
  });
  same_bits(world.run(), wanted, "a step after structs of other sizes");
}

void shorter_structs(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  world.reset();
  kvb_step step = world.data.view();
  step.struct_size = offsetof(kvb_step, reserved_components);  // a host that does not know the reserved pointers
  step.reserved_components = step.reserved_parents = step.reserved_hidden = &step;
  world.wait(world.submit(step));
  same_bits(world.out, wanted, "a step of an older host");
  const kvb_queue_options options{4, 0x7fffffff};  // too short to hold `threads`
  kvb_queue* queue = nullptr;
  succeeds("queue_create with shorter options",
           [&](kv_error* e) { return world.api().queue_create(world.device.get(), &options, &queue, e); });
  world.api().queue_destroy(queue);
  const Longer<kvb_queue_options> future = longer(kvb_queue_options{0, 1});
  succeeds("queue_create with longer options",
           [&](kv_error* e) { return world.api().queue_create(world.device.get(), &future.value, &queue, e); });
  world.api().queue_destroy(queue);
}

void memory_reports(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const kvb_cache_desc cache = world.spec.desc();
  const kvb_program_desc program = world.builder.desc();
  const uint32_t counts[2] = {1, 1};
  const auto both = [&](const char* what, const std::function<kv_status(kvb_memory*, kv_error*)>& call) {
    Longer<kvb_memory> future{{sizeof future, 0, 7, 7}, {7, 7}};
    succeeds(std::string(what) + " into a longer struct", [&](kv_error* e) { return call(&future.value, e); });
    check(future.tail[0] == 0 && future.tail[1] == 0, std::string(what) + " left the tail that it does not know");
    check(future.value.struct_size == sizeof future, std::string(what) + " changed struct_size");
    kvb_memory shorter{offsetof(kvb_memory, host_bytes), 0, 7, 7};
    succeeds(std::string(what) + " into a shorter struct", [&](kv_error* e) { return call(&shorter, e); });
    check(shorter.host_bytes == 7, std::string(what) + " wrote past the struct_size of the caller");
    refuses(std::string(what) + " into NULL", {KV_INVALID_ARGUMENT}, [&](kv_error* e) { return call(nullptr, e); });
  };
  both("cache_memory", [&](kvb_memory* out, kv_error* e) {
    return world.api().cache_memory(world.device.get(), &cache, counts, out, e);
  });
  both("program_memory", [&](kvb_memory* out, kv_error* e) {
    return world.api().program_memory(world.device.get(), &program, &cache, out, e);
  });
}

// ---- missing handles

void null_handles(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  const kvb_api& api = world.api();
  kvb_queue* queue = world.queue.get();
  kvb_cache* cache = world.cache.get();
  kvb_device* device = world.device.get();
  const kvb_cache_desc cache_desc = world.spec.desc();
  const kvb_program_desc program = world.builder.desc();
  world.reset();
  const kvb_step step = world.data.view();
  const uint32_t counts[2] = {6, 6};
  uint64_t number = 0;
  uint32_t first = 0;
  kvb_memory memory{sizeof memory, 0, 0, 0};
  kvb_device* no_device = nullptr;
  kvb_weight* no_weight = nullptr;
  kvb_cache* no_cache = nullptr;
  kvb_program* no_program = nullptr;
  kvb_queue* no_queue = nullptr;
  float* out = world.out.data();
  const auto refused = [](const char* what, const Call& call) { refuses(what, {KV_INVALID_ARGUMENT}, call); };
  refused("instance_create without a result", [&](auto* e) { return api.instance_create(&host.table, nullptr, e); });
  refused("device_count of NULL", [&](auto* e) { return api.device_count(nullptr, &first, nullptr, 0, e); });
  refused("device_open of NULL", [&](auto* e) { return api.device_open(nullptr, 0, nullptr, &no_device, e); });
  refused("device_query of NULL", [&](auto* e) { return api.device_query(nullptr, 1, &number, e); });
  refused("device_query without a result", [&](auto* e) { return api.device_query(device, 1, nullptr, e); });
  refused("weight_create without a description",
          [&](auto* e) { return api.weight_create(device, nullptr, &no_weight, e); });
  refused("cache_memory of NULL", [&](auto* e) { return api.cache_memory(nullptr, &cache_desc, counts, &memory, e); });
  refused("cache_create of NULL", [&](auto* e) { return api.cache_create(nullptr, &cache_desc, &no_cache, e); });
  refused("cache_create without a result", [&](auto* e) { return api.cache_create(device, &cache_desc, nullptr, e); });
  refused("cache_resize of queue NULL", [&](auto* e) { return api.cache_resize(nullptr, cache, counts, e); });
  refused("cache_resize of cache NULL", [&](auto* e) { return api.cache_resize(queue, nullptr, counts, e); });
  refused("cache_copy_rows of NULL", [&](auto* e) { return api.cache_copy_rows(queue, nullptr, 0, 0, 1, 0, 1, e); });
  refused("cache_poison_page of NULL", [&](auto* e) { return api.cache_poison_page(nullptr, cache, 0, 0, e); });
  refused("program_check of NULL",
          [&](auto* e) { return api.program_check(nullptr, &program, &cache_desc, &first, e); });
  refused("program_compile without weights",
          [&](auto* e) { return api.program_compile(device, &program, &cache_desc, nullptr, 1, &no_program, e); });
  refused("queue_create of NULL", [&](auto* e) { return api.queue_create(nullptr, nullptr, &no_queue, e); });
  refused("queue_submit of queue NULL", [&](auto* e) {
    return api.queue_submit(nullptr, world.program->get(), cache, &step, out, world.out.size(), &number, e);
  });
  refused("queue_submit of program NULL",
          [&](auto* e) { return api.queue_submit(queue, nullptr, cache, &step, out, world.out.size(), &number, e); });
  refused("queue_submit of cache NULL", [&](auto* e) {
    return api.queue_submit(queue, world.program->get(), nullptr, &step, out, world.out.size(), &number, e);
  });
  refused("queue_submit without a ticket", [&](auto* e) {
    return api.queue_submit(queue, world.program->get(), cache, &step, out, world.out.size(), nullptr, e);
  });
  refused("queue_wait of NULL", [&](auto* e) { return api.queue_wait(nullptr, 1, 0, e); });
  check(world.untouched(), "a refused submission wrote its output");
  check(no_device == nullptr && no_weight == nullptr && no_cache == nullptr && no_program == nullptr &&
            no_queue == nullptr && number == 0,
        "a refused call wrote its result");
  same_bits(world.run(), wanted, "a step after refused calls");
}

void objects_of_another_device(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host), other(subject, host);
  const std::vector<float> wanted = world.run();
  world.reset();
  const kvb_step step = world.data.view();
  uint64_t ticket = 0;
  refuses("a program of another device", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
    return world.api().queue_submit(world.queue.get(), other.program->get(), world.cache.get(), &step, world.out.data(),
                                    world.out.size(), &ticket, e);
  });
  refuses("a cache of another device", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
    return world.api().queue_submit(world.queue.get(), world.program->get(), other.cache.get(), &step, world.out.data(),
                                    world.out.size(), &ticket, e);
  });
  testing::CacheSpec narrow = world.spec;
  narrow.groups[1].window = 3;
  const Owned<kvb_cache> cache = testing::make_cache(world.device, world.queue.get(), narrow, {6, 6});
  refuses("a cache of another description", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
    return world.api().queue_submit(world.queue.get(), world.program->get(), cache.get(), &step, world.out.data(),
                                    world.out.size(), &ticket, e);
  });
  check(ticket == 0 && world.untouched(), "a refused submission wrote its results");
  same_bits(world.run(), wanted, "a step after refused ones");
}

// ---- memory that runs out inside one call

// Lets every allocation of `call` fail in turn, until it succeeds.
void starve(TestHost& host, const char* what, const std::function<kv_status(kv_error*)>& call) {
  const uint64_t live = host.live_bytes;
  for (int64_t calls = 0; calls < 10000; ++calls) {
    kv_error error{};
    host.calls_until_failure = calls;
    const kv_status status = call(&error);
    host.calls_until_failure = -1;
    if (status == KV_OK) return;
    const std::string where = std::string(what) + " whose allocation " + std::to_string(calls) + " fails";
    check(status == KV_OUT_OF_MEMORY, where + " gave " + status_text(status));
    check(error.code == status && error.message[0] != '\0', where + " left no sentence");
    check(host.live_bytes == live, where + " keeps " + std::to_string(host.live_bytes - live) + " bytes");
  }
  throw Failed(std::string(what) + " never succeeds");
}

void starved_calls(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const std::vector<float> wanted = world.run();
  const kvb_api& api = world.api();
  const kvb_cache_desc cache_desc = world.spec.desc();
  const kvb_program_desc desc = world.builder.desc();
  kvb_queue* queue = nullptr;
  starve(host, "queue_create", [&](kv_error* e) { return api.queue_create(world.device.get(), nullptr, &queue, e); });
  api.queue_destroy(queue);
  kvb_cache* cache = nullptr;
  starve(host, "cache_create",
         [&](kv_error* e) { return api.cache_create(world.device.get(), &cache_desc, &cache, e); });
  api.cache_destroy(cache);
  std::vector<Owned<kvb_weight>> owners;
  std::vector<kvb_weight*> weights;
  for (const testing::Tensor& t : world.builder.weights) {
    const kvb_weight_desc weight{sizeof weight,  t.type,         t.depth, t.rows, t.width, 0,
                                 t.bytes.data(), t.bytes.size(), nullptr, nullptr};
    weights.push_back(nullptr);
    starve(host, "weight_create",
           [&](kv_error* e) { return api.weight_create(world.device.get(), &weight, &weights.back(), e); });
    owners.emplace_back(weights.back(), api.weight_destroy);
  }
  kvb_program* program = nullptr;
  starve(host, "program_compile", [&](kv_error* e) {
    const kv_status status = api.program_compile(world.device.get(), &desc, &cache_desc, weights.data(),
                                                 static_cast<uint32_t>(weights.size()), &program, e);
    check((status == KV_OK) == (program != nullptr), "program_compile wrote its result on failure, or not on success");
    return status;
  });
  api.program_destroy(program);
  world.reset();
  const kvb_step step = world.data.view();
  uint64_t ticket = 0;
  starve(host, "queue_submit", [&](kv_error* e) {
    kv_status status = world.submit(step, &ticket, e);
    if (status == KV_OK) status = api.queue_wait(world.queue.get(), ticket, KVB_WAIT_FOREVER, e);
    check(status == KV_OK || world.untouched(), "a failed step wrote its output");
    return status;
  });
  same_bits(world.out, wanted, "the step after memory had been short");
}

}  // namespace

void add_faults_cases(std::vector<Case>& cases) {
  add_program_faults(cases);
  add_step_faults(cases);
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("faults/") + name, obligations, Profile::kCore, run});
  };
  add("struct_sizes", "KVB-7 KVB-8", struct_sizes);
  add("shorter_structs", "KVB-8", shorter_structs);
  add("memory_reports", "KVB-8", memory_reports);
  add("null_handles", "KVB-7", null_handles);
  add("objects_of_another_device", "KVB-7 KVB-11", objects_of_another_device);
  add("starved_calls", "KVB-7 KVB-14", starved_calls);
}

}  // namespace kvasir::conformance
