// SPDX-License-Identifier: MIT
//
// Group memory: weights of every type and shape, predictions to the byte, imports, requests that cannot be met, orders
// of destruction, nothing that grows.
#include <sys/mman.h>

#include <malloc.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "reference/quantize.h"
#include "suite/small_world.h"

namespace kvasir::conformance {

uint32_t thread_count() {
  uint32_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) count += !entry.path().empty();
  return count;
}

namespace {

struct Shape {
  uint32_t depth, rows, blocks;  // width in blocks, or elements of unblocked types
};
constexpr Shape kBlocked[] = {{1, 1, 1}, {1, 3, 2}, {2, 5, 3}, {1, 33, 1}, {3, 1, 5}};
constexpr Shape kPlain[] = {{1, 1, 1}, {1, 1, 31}, {1, 3, 33}, {2, 5, 7}, {1, 17, 64}, {3, 1, 129}};

// Takes what is taken between its making and a call of `grew`.
class Meter {
 public:
  Meter(const TestHost& host, const TestDevice& device)
      : host_(host),
        device_(device),
        in_host_(device.query(KVB_QUERY_HOST_MEMORY) == 1),
        live_(host.live_bytes),
        used_(device.query(KVB_QUERY_MEMORY_USED)) {}

  void grew(uint64_t predicted, const std::string& what) const {
    const uint64_t used = device_.query(KVB_QUERY_MEMORY_USED) - used_;
    check(used == predicted, what + ": predicted " + std::to_string(predicted) +
                                 " bytes, the device says that it took " + std::to_string(used));
    const uint64_t live = host_.live_bytes - live_;
    check(!in_host_ || live == predicted, what + ": predicted " + std::to_string(predicted) +
                                              " bytes, the host's allocator gave " + std::to_string(live));
  }

 private:
  const TestHost& host_;
  const TestDevice& device_;
  bool in_host_;
  uint64_t live_, used_;
};

kvb_weight_desc weight_desc(uint32_t type, uint32_t depth, uint32_t rows, uint32_t width, const void* data,
                            uint64_t bytes) {
  return {sizeof(kvb_weight_desc), type, depth, rows, width, 0, data, bytes, nullptr, nullptr};
}

void weight_of_type(Subject& subject, uint32_t type) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const bool taken = (device.query(KVB_QUERY_WEIGHT_TYPES) >> type & 1) != 0;
  const uint32_t block = block_elements(type);
  std::mt19937 random(type);
  const auto shapes = block == 1 ? std::vector<Shape>(std::begin(kPlain), std::end(kPlain))
                                 : std::vector<Shape>(std::begin(kBlocked), std::end(kBlocked));
  for (const Shape& shape : shapes) {
    std::vector<unsigned char> data(size_t{shape.depth} * shape.rows * shape.blocks * block_bytes(type));
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(random() & 0x3b);  // scales stay finite
    const kvb_weight_desc desc =
        weight_desc(type, shape.depth, shape.rows, shape.blocks * block, data.data(), data.size());
    const std::string what = std::string("a weight ") + type_label(type) + " [" + std::to_string(shape.depth) + "][" +
                             std::to_string(shape.rows) + "][" + std::to_string(desc.width) + "]";
    kvb_weight* weight = nullptr;
    if (!taken) {
      refuses(what, {KV_UNSUPPORTED},
              [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
      continue;
    }
    kvb_memory memory{sizeof memory, 0, 0, 0};
    succeeds("weight_memory of " + what,
             [&](kv_error* e) { return device.api->weight_memory(device.get(), &desc, &memory, e); });
    const Meter meter(host, device);
    succeeds(what, [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
    meter.grew(memory.device_bytes, what);
    device.api->weight_destroy(weight);
    meter.grew(0, what + " after its end");
  }
  if (!taken) throw Unsupported(std::string("no weights of type ") + type_label(type));
}

void weight_refusals(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const std::vector<unsigned char> data(4096);
  const kvb_weight_desc good = weight_desc(KV_TYPE_F32, 2, 3, 8, data.data(), 192);
  struct Wrong {
    const char* what;
    kv_status status;
    void (*change)(kvb_weight_desc&);
  };
  const Wrong wrongs[] = {
      {"depth 0", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.depth = 0; }},
      {"rows 0", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.rows = 0; }},
      {"width 0", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.width = 0; }},
      {"one byte too few", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.bytes -= 1; }},
      {"one byte too many", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.bytes += 1; }},
      {"a shape whose bytes do not fit 64 bits", KV_INVALID_ARGUMENT,
       [](kvb_weight_desc& d) { d.depth = d.rows = d.width = UINT32_MAX; }},
      {"type 0", KV_UNSUPPORTED, [](kvb_weight_desc& d) { d.type = 0; }},
      {"type 63", KV_UNSUPPORTED, [](kvb_weight_desc& d) { d.type = 63; }},
      {"type UINT32_MAX", KV_UNSUPPORTED, [](kvb_weight_desc& d) { d.type = UINT32_MAX; }},
      {"an unknown flag", KV_UNSUPPORTED, [](kvb_weight_desc& d) { d.flags = 0x80; }},
      {"data NULL", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.data = nullptr; }},
      {"struct_size 0", KV_INVALID_ARGUMENT, [](kvb_weight_desc& d) { d.struct_size = 0; }},
  };
  for (const Wrong& wrong : wrongs) {
    kvb_weight_desc desc = good;
    wrong.change(desc);
    kvb_weight* weight = nullptr;
    refuses(std::string("weight_create with ") + wrong.what, {wrong.status},
            [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
    check(weight == nullptr, std::string("weight_create with ") + wrong.what + " wrote its result");
    check(host.live_blocks == 0, std::string("weight_create with ") + wrong.what + " left memory behind");
  }
}

void count_release(void* user) { ++*static_cast<std::atomic<int>*>(user); }

void import_releases_once(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const std::vector<float> data(64, 1.5f);
  std::atomic<int> releases{0};
  kvb_weight_desc desc = weight_desc(KV_TYPE_F32, 1, 4, 16, data.data(), 256);
  desc.flags = KVB_WEIGHT_IMPORT;
  desc.release = count_release;
  desc.release_user = &releases;
  kvb_memory memory{sizeof memory, 0, 0, 0};
  succeeds("weight_memory of an import",
           [&](kv_error* e) { return device.api->weight_memory(device.get(), &desc, &memory, e); });
  const Meter meter(host, device);
  kvb_weight* weight = nullptr;
  succeeds("an import", [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
  meter.grew(memory.device_bytes, "an import");
  device.api->weight_destroy(weight);
  check(releases == 1, "release was called " + std::to_string(releases) + " times for a weight that was made");

  releases = 0;
  desc.bytes = 255;
  kv_error error{};
  check(device.api->weight_create(device.get(), &desc, &weight, &error) != KV_OK, "a wrong size was accepted");
  check(releases == 1, "release was called " + std::to_string(releases) + " times for a weight that was refused");

  desc.bytes = 256;
  for (int64_t calls = 0; calls < 100; ++calls) {
    releases = 0;
    host.calls_until_failure = calls;
    weight = nullptr;
    const kv_status status = device.api->weight_create(device.get(), &desc, &weight, &error);
    host.calls_until_failure = -1;
    if (status == KV_OK) device.api->weight_destroy(weight);
    check(releases == 1, "release was called " + std::to_string(releases) + " times when memory was short");
    if (status == KV_OK) return;
  }
}

void import_without_release(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const std::vector<float> data(64, 1.5f);
  kvb_weight_desc desc = weight_desc(KV_TYPE_F32, 1, 4, 16, data.data(), 256);
  desc.flags = KVB_WEIGHT_IMPORT;
  kvb_weight* weight = nullptr;
  succeeds("an import without release",
           [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
  device.api->weight_destroy(weight);
}

void huge_weight(Subject& subject) {
  TestHost host;
  host.limit_bytes = uint64_t{1} << 30;
  const TestDevice device = subject.open(host);
  const uint64_t bytes = uint64_t{1} << 42;  // four terabytes of zeros that take no memory
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) data = nullptr;
  const std::vector<float> little(16);
  const kvb_weight_desc desc =
      weight_desc(KV_TYPE_F32, 16, 1u << 18, 1u << 18, data != nullptr ? data : little.data(), bytes);
  kvb_weight* weight = nullptr;
  refuses("a weight of four terabytes", {KV_OUT_OF_MEMORY},
          [&](kv_error* e) { return device.api->weight_create(device.get(), &desc, &weight, e); });
  if (data != nullptr) munmap(data, bytes);
  check(weight == nullptr && host.live_blocks == 0, "a refused weight left something behind");
}

void huge_program(Subject& subject) {
  TestHost host;
  const SmallWorld world(subject, host);
  const uint64_t live = host.live_bytes;
  Limits limits;
  limits.tokens = limits.length = 1u << 20;
  const ProgramBuilder builder = SmallModel::program(limits);  // about a gigabyte of activations
  if (world.device.query(KVB_QUERY_HOST_MEMORY) == 0) throw Unsupported("the memory of this device is its own");
  host.limit_bytes = live + (64u << 20);
  bool refused = false;
  try {
    const TestProgram program(world.device, builder, world.spec);
  } catch (const std::runtime_error&) {
    refused = true;
  }
  host.limit_bytes = UINT64_MAX;
  check(refused, "a program of a gigabyte was made within 64 megabytes");
  check(host.live_bytes == live, "a refused program left something behind");
}

void predicted_cache(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const uint64_t k_types = device.query(KVB_QUERY_K_TYPES), v_types = device.query(KVB_QUERY_V_TYPES);
  const Owned<kvb_queue> queue = device.queue(1);
  for (const uint32_t k : types_in(k_types)) {
    for (const uint32_t v : types_in(v_types)) {
      const kvb_cache_group one{k, v, 3, 40, 24, 0, page_tokens_near(device, 16), 0};
      const kvb_cache_group two{k, v, 1, 9, 5, 8, page_tokens_near(device, 1), 0};
      const testing::CacheSpec spec{{one, two}, {0, 1, 0, 1, 1}};
      const kvb_cache_desc desc = spec.desc();
      const std::string what = std::string("a cache of keys ") + type_label(k) + " and values " + type_label(v);
      const Meter meter(host, device);
      kvb_cache* made = nullptr;
      succeeds(what, [&](kv_error* e) { return device.api->cache_create(device.get(), &desc, &made, e); });
      const Owned<kvb_cache> cache{made, device.api->cache_destroy};
      const uint32_t sizes[][2] = {{3, 7}, {0, 9}, {5, 0}, {0, 0}};
      for (const auto& counts : sizes) {
        kvb_memory memory{sizeof memory, 0, 0, 0};
        succeeds("cache_memory of " + what,
                 [&](kv_error* e) { return device.api->cache_memory(device.get(), &desc, counts, &memory, e); });
        succeeds("cache_resize of " + what,
                 [&](kv_error* e) { return device.api->cache_resize(queue.get(), cache.get(), counts, e); });
        meter.grew(memory.device_bytes,
                   what + " with " + std::to_string(counts[0]) + " and " + std::to_string(counts[1]) + " pages");
      }
    }
  }
}

void predicted_program(Subject& subject) {
  TestHost host;
  const SmallWorld world(subject, host);
  for (const uint32_t flags : {0u, uint32_t{KVB_PROGRAM_TRACE}}) {
    for (const uint32_t mode : {KV_COMPUTE_EXACT, KV_COMPUTE_FAST}) {
      ProgramBuilder builder = SmallModel::program({});
      builder.flags = flags;
      builder.compute_mode = mode;
      const kvb_program_desc desc = builder.desc();
      const kvb_cache_desc cache = world.spec.desc();
      kvb_memory memory{sizeof memory, 0, 0, 0};
      succeeds("program_memory",
               [&](kv_error* e) { return world.api().program_memory(world.device.get(), &desc, &cache, &memory, e); });
      uint64_t weights = 0;
      for (const testing::Tensor& tensor : builder.weights) {
        const kvb_weight_desc weight =
            weight_desc(tensor.type, tensor.depth, tensor.rows, tensor.width, tensor.bytes.data(), tensor.bytes.size());
        kvb_memory part{sizeof part, 0, 0, 0};
        succeeds("weight_memory",
                 [&](kv_error* e) { return world.api().weight_memory(world.device.get(), &weight, &part, e); });
        weights += part.device_bytes;
      }
      const Meter meter(host, world.device);
      const TestProgram program(world.device, builder, world.spec);
      meter.grew(weights + memory.device_bytes, flags == 0 ? "a program" : "a traced program");
    }
  }
}

// Everything from nothing, a step, and the end. False when memory ran out, with the sentence checked.
bool whole_life(const kvb_api& api, kvb_device* device, const testing::CacheSpec& spec, const ProgramBuilder& builder) {
  kv_error error{};
  kv_status status = KV_OK;
  std::vector<kvb_weight*> weights;
  kvb_queue* queue = nullptr;
  kvb_cache* cache = nullptr;
  kvb_program* program = nullptr;
  const kvb_cache_desc cache_desc = spec.desc();
  const kvb_program_desc program_desc = builder.desc();
  const auto go = [&](auto&& call) {
    if (status == KV_OK) status = call();
  };
  go([&] { return api.queue_create(device, nullptr, &queue, &error); });
  for (const testing::Tensor& t : builder.weights) {
    const kvb_weight_desc desc = weight_desc(t.type, t.depth, t.rows, t.width, t.bytes.data(), t.bytes.size());
    weights.push_back(nullptr);
    go([&] { return api.weight_create(device, &desc, &weights.back(), &error); });
  }
  const uint32_t pages[2] = {3, 3};
  go([&] { return api.cache_create(device, &cache_desc, &cache, &error); });
  go([&] { return api.cache_resize(queue, cache, pages, &error); });
  go([&] {
    return api.program_compile(device, &program_desc, &cache_desc, weights.data(),
                               static_cast<uint32_t>(weights.size()), &program, &error);
  });
  TestSequence sequence{0, {{2, 0}, {1, 0}}};
  StepData data;
  data.append(sequence, {1, 2, 3}, true);
  const kvb_step step = data.view();
  std::vector<float> out(size_t{3} * SmallModel::kVocab);
  uint64_t ticket = 0;
  go([&] { return api.queue_submit(queue, program, cache, &step, out.data(), out.size(), &ticket, &error); });
  go([&] { return api.queue_wait(queue, ticket, KVB_WAIT_FOREVER, &error); });
  api.program_destroy(program);
  api.cache_destroy(cache);
  for (kvb_weight* weight : weights) api.weight_destroy(weight);
  api.queue_destroy(queue);
  check(status == KV_OK || status == KV_OUT_OF_MEMORY,
        status_text(status) + " when memory was short: " + error.message);
  check(status == KV_OK || (error.code == status && error.message[0] != '\0'), "no sentence when memory was short");
  return status == KV_OK;
}

void failing_allocator(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const testing::CacheSpec spec = small_cache(device);
  const ProgramBuilder builder = SmallModel::program({});
  for (int64_t calls = 0; calls < 10000; ++calls) {
    host.calls_until_failure = calls;
    const bool done = whole_life(*device.api, device.get(), spec, builder);
    host.calls_until_failure = -1;
    check(host.live_blocks == 0,
          std::to_string(host.live_blocks) + " blocks are left after allocation " + std::to_string(calls) + " failed");
    check(device.query(KVB_QUERY_MEMORY_USED) == 0,
          "the device still counts bytes after allocation " + std::to_string(calls) + " failed");
    if (done) break;
  }
  check(whole_life(*device.api, device.get(), spec, builder), "nothing works after the failures");
}

void failing_open(Subject& subject) {
  for (int64_t calls = 0; calls < 1000; ++calls) {
    TestHost host;
    const kvb_api* api = subject.query(&host.table, nullptr);
    check(api != nullptr, "the query gave no table");
    host.calls_until_failure = calls;
    kv_error error{};
    kvb_instance* instance = nullptr;
    kvb_device* device = nullptr;
    kv_status status = api->instance_create(&host.table, &instance, &error);
    if (status == KV_OK) status = api->device_open(instance, 0, nullptr, &device, &error);
    host.calls_until_failure = -1;
    api->device_close(device);
    api->instance_destroy(instance);
    check(status == KV_OK || status == KV_OUT_OF_MEMORY, status_text(status) + " when memory was short");
    check(host.live_blocks == 0, "opening leaves memory behind when allocation " + std::to_string(calls) + " fails");
    if (status == KV_OK) return;
  }
}

void free_orders(Subject& subject) {
  std::vector<int> order = {0, 1, 2, 3};  // queue, cache, program, weights; weights outlive the program
  do {
    if (std::find(order.begin(), order.end(), 3) < std::find(order.begin(), order.end(), 2)) continue;
    TestHost host;
    const TestDevice device = subject.open(host);
    const kvb_api& api = *device.api;
    const testing::CacheSpec spec = small_cache(device);
    const ProgramBuilder builder = SmallModel::program({});
    Owned<kvb_queue> queue = device.queue(2);
    Owned<kvb_cache> cache = testing::make_cache(device, queue.get(), spec, {3, 3});
    std::vector<kvb_weight*> weights;
    for (const testing::Tensor& t : builder.weights) {
      const kvb_weight_desc desc = weight_desc(t.type, t.depth, t.rows, t.width, t.bytes.data(), t.bytes.size());
      weights.push_back(nullptr);
      succeeds("weight_create",
               [&](kv_error* e) { return api.weight_create(device.get(), &desc, &weights.back(), e); });
    }
    const kvb_program_desc desc = builder.desc();
    const kvb_cache_desc cache_desc = spec.desc();
    kvb_program* program = nullptr;
    succeeds("program_compile", [&](kv_error* e) {
      return api.program_compile(device.get(), &desc, &cache_desc, weights.data(),
                                 static_cast<uint32_t>(weights.size()), &program, e);
    });
    for (const int what : order) {
      if (what == 0) queue.reset();
      if (what == 1) cache.reset();
      if (what == 2) api.program_destroy(program);
      if (what != 3) continue;
      for (auto weight = weights.rbegin(); weight != weights.rend(); ++weight) api.weight_destroy(*weight);
    }
    check(host.live_blocks == 0 && device.query(KVB_QUERY_MEMORY_USED) == 0, "memory is left after everything ended");
  } while (std::next_permutation(order.begin(), order.end()));
}

size_t open_files() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += !entry.path().empty();
  return count;
}

void no_growth(Subject& subject) {
  constexpr int kRounds = 1000, kWarm = 100;
  constexpr size_t kSlack = 65536;  // of 900 rounds: less than 73 bytes each
  size_t heap = 0, files = 0;
  uint32_t threads = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kWarm) {
      heap = mallinfo2().uordblks;
      files = open_files();
      threads = thread_count();
    }
    TestHost host;
    const TestDevice device = subject.open(host);
    const Owned<kvb_queue> queue = device.queue(round % 8 == 0 ? 2 : 1);
  }
  const size_t heap_now = mallinfo2().uordblks;
  check(heap_now < heap + kSlack, "the heap grew from " + std::to_string(heap) + " to " + std::to_string(heap_now) +
                                      " bytes in 900 rounds of opening and closing");
  check(open_files() <= files, "open files grew from " + std::to_string(files) + " to " + std::to_string(open_files()));
  check(thread_count() <= threads,
        "threads grew from " + std::to_string(threads) + " to " + std::to_string(thread_count()));
}

// What malloc keeps in its own caches counts as used and may grow for a while; a leak grows in every part.
void no_growth_of_lives(Subject& subject) {
  constexpr int kParts = 4, kLives = 40;
  constexpr size_t kSlack = 4096;  // of 40 lives: about 100 bytes each
  TestHost host;
  const TestDevice device = subject.open(host);
  const testing::CacheSpec spec = small_cache(device);
  const ProgramBuilder builder = SmallModel::program({});
  size_t heap = 0, least = SIZE_MAX;
  for (int part = 0; part < kParts; ++part) {
    for (int life = 0; life < kLives; ++life) {
      check(whole_life(*device.api, device.get(), spec, builder), "memory ran out in life " + std::to_string(life));
    }
    const size_t now = mallinfo2().uordblks;
    if (part > 0) least = std::min(least, now > heap ? now - heap : 0);
    heap = now;
  }
  check(least < kSlack, "the heap grows by " + std::to_string(least) + " bytes or more in every " +
                            std::to_string(kLives) + " lives of a program");
  check(device.query(KVB_QUERY_MEMORY_USED) == 0, "the device still counts bytes");
}

}  // namespace

void add_memory_cases(std::vector<Case>& cases) {
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    cases.push_back({std::string("memory/weight/") + type_label(type), "KVB-13 KVB-14",
                     type == KV_TYPE_F32 ? Profile::kCore : Profile::kFull,
                     [type](Subject& subject) { weight_of_type(subject, type); }});
  }
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&),
                       Profile profile = Profile::kCore) {
    cases.push_back({std::string("memory/") + name, obligations, profile, run});
  };
  add("weight_refusals", "KVB-7 KVB-11", weight_refusals);
  add("import_releases_once", "KVB-26", import_releases_once);
  add("import_without_release", "KVB-26", import_without_release);
  add("huge_weight", "KVB-7 KVB-14", huge_weight);
  add("huge_program", "KVB-7 KVB-14", huge_program, Profile::kFull);
  add("predicted_cache", "KVB-13", predicted_cache);
  add("predicted_program", "KVB-13", predicted_program);
  add("failing_allocator", "KVB-7 KVB-14", failing_allocator);
  add("failing_open", "KVB-14", failing_open);
  add("free_orders", "KVB-9", free_orders);
  add("no_growth", "KVB-14 KVB-25", no_growth);
  add("no_growth_of_lives", "KVB-14", no_growth_of_lives);
}

}  // namespace kvasir::conformance
