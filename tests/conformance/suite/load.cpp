// SPDX-License-Identifier: MIT
//
// Group load: negotiation, the table, instance and device, what the entry function must not do. Not here: how a host
// finds and trusts plugins.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "suite/elf_symbols.h"
#include "suite/expect.h"
#include "suite/system_calls.h"

namespace kvasir::conformance {
namespace {

using testing::TestDevice;
using testing::TestHost;

// The query refuses `host` with `status`.
void query_refuses(const Subject& subject, const char* what, const kvb_host* host,
                   std::initializer_list<kv_status> status) {
  refuses(std::string("the query with ") + what, status, [&](kv_error* error) {
    const kvb_api* api = subject.query(host, error);
    if (api != nullptr) return kv_status{KV_OK};
    return error != nullptr ? error->code : *status.begin();
  });
}

void other_abi_version(Subject& subject) {
  TestHost host;
  for (const uint32_t version : {KVB_ABI_VERSION + 1, KVB_ABI_VERSION + 0x10000u, 0u, UINT32_MAX}) {
    kvb_host other = host.table;
    other.abi_version = version;
    query_refuses(subject, ("ABI version " + std::to_string(version)).c_str(), &other, {KV_INCOMPATIBLE});
  }
}

void null_host(Subject& subject) { query_refuses(subject, "host NULL", nullptr, {KV_INVALID_ARGUMENT}); }

void host_without_allocator(Subject& subject) {
  TestHost host;
  kvb_host bare = host.table;
  bare.allocator = {};
  query_refuses(subject, "a host without an allocator", &bare, {KV_INVALID_ARGUMENT});
}

void older_host(Subject& subject) {
  TestHost host;
  kvb_host older = host.table;
  older.struct_size = offsetof(kvb_host, parallel_for);  // ends before the executor: it reads as NULL
  older.parallel_for = reinterpret_cast<kv_parallel_for_fn>(uintptr_t{1});
  kv_error error{};
  const kvb_api* api = subject.query(&older, &error);
  check(api != nullptr, std::string("a host that ends before parallel_for is refused: ") + error.message);
  const TestDevice device = [&] {
    host.table = older;
    return subject.open(host);
  }();
  const auto queue = device.queue();  // a table read beyond its end would call address 1 now or in a step
}

struct FutureHost {
  kvb_host host;
  uint64_t tail[2];
};

void newer_host_zero_tail(Subject& subject) {
  TestHost host;
  FutureHost future{host.table, {0, 0}};
  future.host.struct_size = sizeof future;
  kv_error error{};
  const kvb_api* api = subject.query(&future.host, &error);
  check(api != nullptr, std::string("a longer host with a zero tail is refused: ") + error.message);
  kvb_instance* instance = nullptr;
  succeeds("instance_create with a longer host",
           [&](kv_error* e) { return api->instance_create(&future.host, &instance, e); });
  api->instance_destroy(instance);
}

void newer_host_used_tail(Subject& subject) {
  TestHost host;
  FutureHost future{host.table, {0, 1}};
  future.host.struct_size = sizeof future;
  query_refuses(subject, "a longer host whose tail is used", &future.host, {KV_UNSUPPORTED});
  kv_error error{};
  const kvb_api* api = subject.query(&host.table, &error);
  check(api != nullptr, error.message);
  kvb_instance* instance = nullptr;
  refuses("instance_create with a longer host whose tail is used", {KV_UNSUPPORTED},
          [&](kv_error* e) { return api->instance_create(&future.host, &instance, e); });
  check(instance == nullptr, "a refused instance_create wrote its result");
}

void table_is_complete(Subject& subject) {
  TestHost host;
  const kvb_api* api = subject.query(&host.table, nullptr);
  check(api != nullptr, "the query gave no table");
  check(api->struct_size >= sizeof(kvb_api), "the table has " + std::to_string(api->struct_size) + " bytes");
  for (size_t offset = offsetof(kvb_api, instance_create); offset < sizeof(kvb_api); offset += sizeof(void*)) {
    if (offset == offsetof(kvb_api, cache_move_rows)) continue;  // optional
    void* entry = nullptr;
    std::memcpy(&entry, reinterpret_cast<const char*>(api) + offset, sizeof entry);
    check(entry != nullptr, "the pointer at byte " + std::to_string(offset) + " of the table is NULL");
  }
}

void name_and_version(Subject& subject) {
  TestHost host;
  const kvb_api* api = subject.query(&host.table, nullptr);
  check(api != nullptr && api->name != nullptr && api->version != nullptr, "name or version is NULL");
  const std::string name = api->name, version = api->version;
  check(!name.empty() && name.size() <= 32, "the name has " + std::to_string(name.size()) + " bytes");
  check(!version.empty() && version.size() <= 63, "the version has " + std::to_string(version.size()) + " bytes");
  const std::string file = subject.path.substr(subject.path.find_last_of('/') + 1);
  const std::string wanted = "libkvasir_backend_" + name + ".v" + std::to_string(KVB_ABI_MAJOR) + ".so";
  check(file == wanted, "the table says '" + name + "', but the file is called '" + file + "'");
}

void one_symbol(Subject& subject) {
  const std::vector<std::string> symbols = exported_symbols(subject.path);
  std::string list;
  for (const std::string& symbol : symbols) list += " " + symbol;
  check(symbols.size() == 1 && symbols.front() == KVB_ENTRY_SYMBOL,
        "the file exports " + std::to_string(symbols.size()) + " symbols:" + list.substr(0, 300));
}

void query_twice(Subject& subject) {
  TestHost first_host, second_host;
  const kvb_api* first = subject.query(&first_host.table, nullptr);
  const kvb_api* second = subject.query(&second_host.table, nullptr);
  check(first != nullptr && first == second, "a second query gives another table");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) wrong += subject.query(&first_host.table, nullptr) != first;
    });
  }
  for (std::thread& thread : threads) thread.join();
  check(wrong == 0, "queries on several threads differ");
}

void query_is_quiet(Subject& subject) {
  const std::string call = forbidden_call_of_query(subject.path, subject.query);
  check(call.empty(), "the query made a system call that it must not make: " + call);
}

// In a process of its own, which then ends with everything still open.
void exit_with_objects_open(Subject& subject) {
  const pid_t child = fork();
  check(child >= 0, "no process");
  if (child == 0) {
    alarm(20);
    static TestHost host;
    static TestDevice* device = new TestDevice(subject.open(host));
    static auto* queue = new testing::Owned<kvb_queue>(device->queue(2));
    std::exit(queue->get() == nullptr ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(!WIFSIGNALED(status), "the process died at its exit by signal " + std::to_string(WTERMSIG(status)));
  check(WEXITSTATUS(status) == 0, "the process exited with status " + std::to_string(WEXITSTATUS(status)));
}

void device_count(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  uint32_t count = 0;
  char reason[4] = "###";
  succeeds("device_count", [&](kv_error* error) {
    return device.api->device_count(device.instance(), &count, reason, sizeof reason, error);
  });
  check(std::memchr(reason, 0, sizeof reason) != nullptr, "device_count does not end the reason within its capacity");
  succeeds("device_count without a reason",
           [&](kv_error* error) { return device.api->device_count(device.instance(), &count, nullptr, 0, error); });
  check(count > 0, "device 0 is open, but device_count gives 0");
  kvb_device* opened = nullptr;
  kvb_device_info info{};
  info.struct_size = sizeof info;
  for (const uint32_t index : {count, UINT32_MAX}) {
    refuses("device_open of device " + std::to_string(index), {KV_NOT_FOUND, KV_INVALID_ARGUMENT},
            [&](kv_error* e) { return device.api->device_open(device.instance(), index, nullptr, &opened, e); });
    refuses("device_info of device " + std::to_string(index), {KV_NOT_FOUND, KV_INVALID_ARGUMENT},
            [&](kv_error* e) { return device.api->device_info(device.instance(), index, &info, e); });
  }
  check(opened == nullptr, "a refused device_open wrote its result");
}

void device_info(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  struct {
    kvb_device_info info;
    uint64_t tail;
  } longer;
  std::memset(&longer, '#', sizeof longer);
  longer.info.struct_size = sizeof longer;
  const auto read = [&](kv_error* error) { return device.api->device_info(device.instance(), 0, &longer.info, error); };
  succeeds("device_info into a longer struct", read);
  check(longer.info.struct_size == sizeof longer, "device_info changed the struct_size of the caller");
  check(longer.tail == 0, "device_info left the tail that it does not know as it was");
  check(std::memchr(longer.info.name, 0, sizeof longer.info.name) != nullptr, "the device's name has no end");
  check(std::memchr(longer.info.driver, 0, sizeof longer.info.driver) != nullptr, "the device's driver has no end");
  check(longer.info.name[0] != '\0', "the device has no name");
  check(longer.info.kind >= KVB_DEVICE_CPU && longer.info.kind <= KVB_DEVICE_OTHER,
        "the device is of the unknown kind " + std::to_string(longer.info.kind));
  std::memset(&longer, '#', sizeof longer);
  longer.info.struct_size = offsetof(kvb_device_info, name);
  succeeds("device_info into a shorter struct", read);
  check(longer.info.name[0] == '#', "device_info wrote past the struct_size of the caller");
  longer.info.struct_size = 0;
  refuses("device_info into a struct of size 0", {KV_INVALID_ARGUMENT}, read);
}

void device_options(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  struct {
    kvb_device_options options;
    uint64_t tail;
  } longer{{sizeof longer, 0, nullptr}, 0};
  kvb_device* opened = nullptr;
  const auto open = [&](kv_error* error) {
    return device.api->device_open(device.instance(), 0, &longer.options, &opened, error);
  };
  succeeds("device_open with longer options", open);
  device.api->device_close(opened);
  opened = nullptr;
  succeeds("device_open without options",
           [&](kv_error* error) { return device.api->device_open(device.instance(), 0, nullptr, &opened, error); });
  device.api->device_close(opened);
  opened = nullptr;
  longer.tail = 1;
  refuses("device_open with options whose tail is used", {KV_UNSUPPORTED}, open);
  longer = {{sizeof(kvb_device_options), 7, nullptr}, 0};
  refuses("device_open with a reserved field that is used", {KV_UNSUPPORTED}, open);
  longer = {{sizeof(kvb_device_options), 0, "no-such-variant"}, 0};
  refuses("device_open of an unknown variant", {KV_UNSUPPORTED}, open);
  longer = {{2, 0, nullptr}, 0};
  refuses("device_open with options of size 2", {KV_INVALID_ARGUMENT}, open);
  check(opened == nullptr, "a refused device_open wrote its result");
}

void device_queries(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  for (uint32_t key = KVB_QUERY_WEIGHT_TYPES; key <= KVB_QUERY_DEFAULT_THREADS; ++key) device.query(key);
  const uint64_t lowest = device.query(KVB_QUERY_PAGE_TOKENS_MIN), best = device.query(KVB_QUERY_PAGE_TOKENS),
                 highest = device.query(KVB_QUERY_PAGE_TOKENS_MAX);
  check(0 < lowest && lowest <= best && best <= highest, "page tokens: lowest " + std::to_string(lowest) + ", best " +
                                                             std::to_string(best) + ", highest " +
                                                             std::to_string(highest));
  for (const uint32_t key : {KVB_QUERY_WEIGHT_TYPES, KVB_QUERY_K_TYPES, KVB_QUERY_V_TYPES}) {
    check(device.query(key) != 0 && (device.query(key) & 1) == 0,
          "query " + std::to_string(key) + " gives the mask " + std::to_string(device.query(key)));
  }
  for (const uint32_t key : {KVB_QUERY_DETERMINISTIC, KVB_QUERY_HOST_MEMORY, KVB_QUERY_WEIGHT_IMPORT}) {
    check(device.query(key) <= 1, "query " + std::to_string(key) + " is neither 0 nor 1");
  }
  check(device.query(KVB_QUERY_BATCH_TOKENS) > 0, "the preferred batch has 0 tokens");
  check(device.query(KVB_QUERY_MEMORY_USED) == 0,
        "a fresh device says that it holds " + std::to_string(device.query(KVB_QUERY_MEMORY_USED)) + " bytes");
  check(device.api->device_variant(device.get()) != nullptr, "the device has no variant name");
}

void unknown_query(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  for (const uint32_t key : {0u, uint32_t{KVB_QUERY_DEFAULT_THREADS} + 1, UINT32_MAX}) {
    uint64_t value = 42;
    refuses("query " + std::to_string(key), {KV_UNSUPPORTED},
            [&](kv_error* error) { return device.api->device_query(device.get(), key, &value, error); });
    check(value == 42, "a refused query wrote its result");
  }
}

void unknown_extension(Subject& subject) {
  TestHost host;
  const kvb_api* api = subject.query(&host.table, nullptr);
  check(api != nullptr, "the query gave no table");
  for (const char* name : {"kvasir.no_such_extension/1", "", "x"}) {
    check(api->extension(name) == nullptr, std::string("there is an extension '") + name + "'");
  }
}

void null_destroys(Subject& subject) {
  TestHost host;
  const kvb_api* api = subject.query(&host.table, nullptr);
  check(api != nullptr, "the query gave no table");
  api->queue_destroy(nullptr);
  api->program_destroy(nullptr);
  api->cache_destroy(nullptr);
  api->weight_destroy(nullptr);
  api->device_close(nullptr);
  api->instance_destroy(nullptr);
}

}  // namespace

void add_load_cases(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("load/") + name, obligations, Profile::kCore, run});
  };
  add("one_symbol", "KVB-1", one_symbol);
  add("query_twice", "KVB-2", query_twice);
  add("query_is_quiet", "KVB-2", query_is_quiet);
  add("other_abi_version", "KVB-3", other_abi_version);
  add("null_host", "KVB-3", null_host);
  add("host_without_allocator", "KVB-3", host_without_allocator);
  add("older_host", "KVB-8", older_host);
  add("newer_host_zero_tail", "KVB-8", newer_host_zero_tail);
  add("newer_host_used_tail", "KVB-8", newer_host_used_tail);
  add("table_is_complete", "KVB-3", table_is_complete);
  add("name_and_version", "KVB-3", name_and_version);
  add("exit_with_objects_open", "KVB-5 KVB-25", exit_with_objects_open);
  add("device_count", "KVB-4 KVB-7", device_count);
  add("device_info", "KVB-8", device_info);
  add("device_options", "KVB-8", device_options);
  add("device_queries", "KVB-7", device_queries);
  add("unknown_query", "KVB-7", unknown_query);
  add("unknown_extension", "KVB-7", unknown_extension);
  add("null_destroys", "KVB-9", null_destroys);
}

}  // namespace kvasir::conformance
