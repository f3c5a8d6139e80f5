// SPDX-License-Identifier: MIT
//
// Drives any backend through its kvb_api: a host whose allocator counts and can fail, loading of a plugin, owners for
// the ABI's objects, a builder of small programs, and steps made of appends to sequences. Calls that must succeed throw
// a std::runtime_error with the backend's sentence; tests of failures call the table themselves.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/backend.h"

namespace kvasir::testing {

// ---- host

// What hosts found wrong with the use of their allocators, for whoever looks after many tests.
struct HostFaults {
  std::atomic<uint64_t> abandoned{0};   // blocks that a host still had at its end
  std::atomic<uint64_t> mismatched{0};  // blocks given back with another size or alignment
  std::atomic<uint64_t> overrun{0};     // blocks written past their end

  void reset() { abandoned = mismatched = overrun = 0; }
};
inline HostFaults host_faults;

class TestHost {
 public:
  TestHost() {
    table.struct_size = sizeof table;
    table.abi_version = KVB_ABI_VERSION;
    table.allocator = {this, &TestHost::alloc, &TestHost::release};
  }
  ~TestHost() { host_faults.abandoned += live_blocks; }
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  kvb_host table{};
  std::atomic<uint64_t> live_bytes{0};
  std::atomic<uint64_t> live_blocks{0};
  std::atomic<int64_t> calls_until_failure{-1};   // 0: the next call and all after it fail; negative: none does
  std::atomic<uint64_t> limit_bytes{UINT64_MAX};  // requests beyond so many live bytes fail

 private:
  // In front of each block, at its alignment or 64; behind it are guard bytes.
  struct Label {
    uint64_t size, align;
  };
#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t kGuard = 0;  // the sanitizer's own guard is better
#else
  static constexpr size_t kGuard = 64;
#endif
  static constexpr unsigned char kGuardByte = 0xa5;
  static size_t front(size_t align) { return std::max<size_t>(align, 64); }

  static void* alloc(void* user, size_t size, size_t align) {
    auto* host = static_cast<TestHost*>(user);
    if (host->calls_until_failure == 0) return nullptr;
    if (host->calls_until_failure > 0) --host->calls_until_failure;
    const size_t before = front(align);
    if (size > PTRDIFF_MAX - before - kGuard || host->live_bytes + size > host->limit_bytes) return nullptr;
    auto* memory =
        static_cast<unsigned char*>(::operator new(before + size + kGuard, std::align_val_t(before), std::nothrow));
    if (memory == nullptr) return nullptr;
    const Label label{size, align};
    std::memcpy(memory + before - sizeof label, &label, sizeof label);
    std::memset(memory + before, 0xff, size);  // NaN: nobody may rely on fresh memory
    std::memset(memory + before + size, kGuardByte, kGuard);
    host->live_bytes += size;
    ++host->live_blocks;
    return memory + before;
  }
  static void release(void* user, void* data, size_t size, size_t align) {
    auto* host = static_cast<TestHost*>(user);
    auto* block = static_cast<unsigned char*>(data);
    if (block == nullptr) {
      ++host_faults.mismatched;
      return;
    }
    Label label;
    std::memcpy(&label, block - sizeof label, sizeof label);
    if (label.size != size || label.align != align) ++host_faults.mismatched;
    if (std::any_of(block + label.size, block + label.size + kGuard, [](unsigned char b) { return b != kGuardByte; })) {
      ++host_faults.overrun;
    }
    host->live_bytes -= label.size;
    --host->live_blocks;
    const size_t before = front(static_cast<size_t>(label.align));
    ::operator delete(block - before, std::align_val_t(before));
  }
};

// The entry function of a plugin in the folder KVASIR_TEST_PLUGINS, or NULL when there is no such file.
inline kvb_query_fn find_plugin(const std::string& name) {
  const char* folder = std::getenv("KVASIR_TEST_PLUGINS");
  const std::string path = std::string(folder != nullptr ? folder : ".") + "/libkvasir_backend_" + name + ".v0.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<kvb_query_fn>(dlsym(library, KVB_ENTRY_SYMBOL));
}

inline void expect_ok(kv_status status, const kv_error& error, const char* call) {
  if (status == KV_OK) return;
  throw std::runtime_error(std::string(call) + " gave status " + std::to_string(status) + ": " + error.message);
}

// ---- objects

template <typename T>
using Owned = std::unique_ptr<T, std::function<void(T*)>>;

// One device of a backend, with what is needed to reach it. Destroy what was made on it first.
class TestDevice {
 public:
  TestDevice(kvb_query_fn entry, TestHost& host, const char* variant = nullptr) {
    kv_error error{};
    api = entry(&host.table, &error);
    if (api == nullptr) throw std::runtime_error(std::string("query: ") + error.message);
    kvb_instance* instance = nullptr;
    expect_ok(api->instance_create(&host.table, &instance, &error), error, "instance_create");
    instance_ = {instance, api->instance_destroy};
    const kvb_device_options options{sizeof options, 0, variant};
    kvb_device* device = nullptr;
    expect_ok(api->device_open(instance, 0, &options, &device, &error), error, "device_open");
    device_ = {device, api->device_close};
  }

  kvb_instance* instance() const { return instance_.get(); }
  kvb_device* get() const { return device_.get(); }

  uint64_t query(uint32_t key) const {
    kv_error error{};
    uint64_t value = 0;
    expect_ok(api->device_query(get(), key, &value, &error), error, "device_query");
    return value;
  }

  Owned<kvb_queue> queue(uint32_t threads = 0) const {
    kv_error error{};
    const kvb_queue_options options{sizeof options, threads};
    kvb_queue* queue = nullptr;
    expect_ok(api->queue_create(get(), &options, &queue, &error), error, "queue_create");
    return {queue, api->queue_destroy};
  }

  const kvb_api* api = nullptr;

 private:
  Owned<kvb_instance> instance_;
  Owned<kvb_device> device_;
};

// A cache description that owns its arrays.
struct CacheSpec {
  std::vector<kvb_cache_group> groups;
  std::vector<uint32_t> layer_group;

  kvb_cache_desc desc() const {
    return {sizeof(kvb_cache_desc),
            static_cast<uint32_t>(layer_group.size()),
            static_cast<uint32_t>(groups.size()),
            sizeof(kvb_cache_group),
            groups.data(),
            layer_group.data()};
  }
};

// `layers` layers in one group.
inline CacheSpec one_group(uint32_t layers, kvb_cache_group group) {
  return {{group}, std::vector<uint32_t>(layers, 0)};
}

inline Owned<kvb_cache> make_cache(const TestDevice& device, kvb_queue* queue, const CacheSpec& spec,
                                   const std::vector<uint32_t>& page_counts) {
  kv_error error{};
  const kvb_cache_desc desc = spec.desc();
  kvb_cache* cache = nullptr;
  expect_ok(device.api->cache_create(device.get(), &desc, &cache, &error), error, "cache_create");
  Owned<kvb_cache> owned{cache, device.api->cache_destroy};
  expect_ok(device.api->cache_resize(queue, cache, page_counts.data(), &error), error, "cache_resize");
  return owned;
}

// Rows of a cache as f32 [count][row width].
inline std::vector<float> read_cache(const TestDevice& device, kvb_queue* queue, kvb_cache* cache, uint32_t layer,
                                     uint32_t what, uint32_t page, uint32_t first, uint32_t count, uint32_t row_width) {
  kv_error error{};
  std::vector<float> data(size_t{count} * row_width);
  const kvb_cache_rows rows{sizeof rows, layer, what, KVB_FORMAT_F32, page, first, count, 0};
  expect_ok(device.api->cache_read_rows(queue, cache, &rows, data.data(), data.size() * sizeof(float), &error), error,
            "cache_read_rows");
  return data;
}

// ---- programs

struct Tensor {
  uint32_t type;
  uint32_t depth, rows, width;
  std::vector<unsigned char> bytes;
};

inline Tensor f32_tensor(uint32_t rows, uint32_t width, const std::vector<float>& data, uint32_t depth = 1) {
  Tensor tensor{KV_TYPE_F32, depth, rows, width, std::vector<unsigned char>(data.size() * sizeof(float))};
  if (!data.empty()) std::memcpy(tensor.bytes.data(), data.data(), tensor.bytes.size());
  return tensor;
}

struct Limits {
  uint32_t tokens = 16;
  uint32_t outputs = 16;
  uint32_t sequences = 4;
  uint32_t length = 64;
};

// Values, ops, blob and weights of a program. Activations never share bytes.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Limits largest = {}) : limits(largest) {}

  uint32_t tokens(uint32_t width, uint32_t depth = 1) { return scratch(KV_TYPE_F32, KVB_ROWS_TOKENS, width, depth); }
  uint32_t selected(uint32_t width) { return scratch(KV_TYPE_F32, KVB_ROWS_OUTPUTS, width, 1); }
  uint32_t ids(uint32_t width, uint32_t rows = KVB_ROWS_TOKENS) { return scratch(KVB_TYPE_I32, rows, width, 1); }
  uint32_t output(uint32_t width) {
    output_width = width;
    return add({KVB_VALUE_OUTPUT, KV_TYPE_F32, KVB_ROWS_OUTPUTS, width, 1, 0, 0});
  }
  uint32_t weight(Tensor tensor) {
    const kvb_value value{KVB_VALUE_WEIGHT, tensor.type, tensor.rows, tensor.width, tensor.depth, 0, weights.size()};
    weights.push_back(std::move(tensor));
    return add(value);
  }
  uint32_t vector(const std::vector<float>& data) {
    return weight(f32_tensor(1, static_cast<uint32_t>(data.size()), data));
  }
  uint32_t matrix(uint32_t rows, uint32_t width, const std::vector<float>& data) {
    return weight(f32_tensor(rows, width, data));
  }
  // Byte offset of rotary parameters in the blob.
  uint32_t rope(uint32_t pairing, uint32_t first, float magnitude, const std::vector<double>& frequency) {
    const kvb_rope header{pairing, first, static_cast<uint32_t>(frequency.size()), magnitude};
    const size_t offset = blob.size();
    blob.resize(offset + 2 + frequency.size());
    std::memcpy(&blob[offset], &header, sizeof header);
    if (!frequency.empty()) std::memcpy(&blob[offset + 2], frequency.data(), frequency.size() * sizeof(double));
    return static_cast<uint32_t>(offset * sizeof(double));
  }

  kvb_op& op(uint16_t code, std::initializer_list<uint32_t> in, std::initializer_list<uint32_t> out,
             std::initializer_list<uint32_t> param = {}) {
    kvb_op op{};
    op.code = code;
    for (uint32_t& operand : op.in) operand = KVB_NONE;
    for (uint32_t& operand : op.out) operand = KVB_NONE;
    std::copy(in.begin(), in.end(), op.in);
    std::copy(out.begin(), out.end(), op.out);
    std::copy(param.begin(), param.end(), op.param);
    ops.push_back(op);
    return ops.back();
  }

  // Valid while the builder is not changed.
  kvb_program_desc desc() const {
    kvb_program_desc desc{};
    desc.struct_size = sizeof desc;
    desc.flags = flags;
    desc.max_tokens = limits.tokens;
    desc.max_outputs = limits.outputs;
    desc.max_sequences = limits.sequences;
    desc.max_length = limits.length;
    desc.value_count = static_cast<uint32_t>(values.size());
    desc.value_stride = sizeof(kvb_value);
    desc.op_count = static_cast<uint32_t>(ops.size());
    desc.op_stride = sizeof(kvb_op);
    desc.values = values.data();
    desc.ops = ops.data();
    desc.blob = blob.data();
    desc.blob_bytes = blob.size() * sizeof(double);
    desc.scratch_bytes = scratch_bytes;
    desc.compute_mode = compute_mode;
    return desc;
  }

  // Floats per output row: ids of a TOP_K follow its scores.
  uint32_t output_floats() const {
    const auto gives_ids = [this](const kvb_op& op) {
      return op.code == KVB_OP_TOP_K && values[op.out[0]].kind == KVB_VALUE_OUTPUT;
    };
    return std::any_of(ops.begin(), ops.end(), gives_ids) ? 2 * output_width : output_width;
  }

  Limits limits;
  uint32_t flags = 0;
  uint32_t compute_mode = KV_COMPUTE_EXACT;
  std::vector<kvb_value> values;
  std::vector<kvb_op> ops;
  std::vector<double> blob;
  std::vector<Tensor> weights;
  uint64_t scratch_bytes = 0;
  uint32_t output_width = 0;

 private:
  uint32_t add(const kvb_value& value) {
    values.push_back(value);
    return static_cast<uint32_t>(values.size() - 1);
  }
  uint32_t scratch(uint32_t type, uint32_t rows, uint32_t width, uint32_t depth) {
    const uint64_t count = rows == KVB_ROWS_TOKENS ? limits.tokens : limits.outputs;
    const uint64_t place = scratch_bytes;
    scratch_bytes += (count * depth * width * 4 + 63) / 64 * 64;
    return add({KVB_VALUE_SCRATCH, type, rows, width, depth, 0, place});
  }
};

inline uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

// A program on a device, with its weights.
class TestProgram {
 public:
  TestProgram(const TestDevice& device, const ProgramBuilder& builder, const CacheSpec& cache)
      : output_width(builder.output_floats()) {
    kv_error error{};
    std::vector<kvb_weight*> handles;
    for (const Tensor& tensor : builder.weights) {
      const kvb_weight_desc desc{sizeof desc, tensor.type,         tensor.depth,        tensor.rows, tensor.width,
                                 0,           tensor.bytes.data(), tensor.bytes.size(), nullptr,     nullptr};
      kvb_weight* weight = nullptr;
      expect_ok(device.api->weight_create(device.get(), &desc, &weight, &error), error, "weight_create");
      weights_.emplace_back(weight, device.api->weight_destroy);
      handles.push_back(weight);
    }
    const kvb_program_desc desc = builder.desc();
    const kvb_cache_desc cache_desc = cache.desc();
    kvb_program* program = nullptr;
    expect_ok(device.api->program_compile(device.get(), &desc, &cache_desc, handles.data(),
                                          static_cast<uint32_t>(handles.size()), &program, &error),
              error, "program_compile");
    program_ = {program, device.api->program_destroy};
  }

  kvb_program* get() const { return program_.get(); }
  uint32_t output_width;

 private:
  std::vector<Owned<kvb_weight>> weights_;
  Owned<kvb_program> program_;
};

// ---- steps

// A sequence as a host keeps it: its length and, per cache group, its pages in order.
struct TestSequence {
  uint32_t length = 0;
  std::vector<std::vector<uint32_t>> pages;  // [groups][...]
};

// Everything a kvb_step points to.
class StepData {
 public:
  // Appends tokens (ids, or ~r for row r of `embeddings`) after `sequence.length`, and advances it. Its last token, or
  // with `all` every token, gives an output row.
  void append(TestSequence& sequence, const std::vector<int32_t>& ids, bool all = false) {
    const auto index = static_cast<uint32_t>(lengths.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (all || i + 1 == ids.size()) output_rows.push_back(static_cast<uint32_t>(tokens.size()));
      tokens.push_back(ids[i]);
      positions.push_back(sequence.length++);
      sequence_of.push_back(index);
    }
    lengths.push_back(sequence.length);
    pages.push_back(sequence.pages);
  }

  // Adds a row to `embeddings` and returns the token that refers to it.
  int32_t embed(const std::vector<float>& row) {
    embeddings.insert(embeddings.end(), row.begin(), row.end());
    return ~static_cast<int32_t>(embedding_count++);
  }

  // Valid while this object is not changed.
  kvb_step view() {
    const size_t groups = pages.empty() ? 0 : pages.front().size();
    flat_.assign(groups, {});
    tables_.clear();
    for (size_t group = 0; group < groups; ++group) {
      size_t widest = 0;
      for (const auto& sequence : pages) widest = std::max(widest, sequence[group].size());
      for (const auto& sequence : pages) {
        flat_[group].insert(flat_[group].end(), sequence[group].begin(), sequence[group].end());
        flat_[group].resize(flat_[group].size() + widest - sequence[group].size(), KVB_NONE);
      }
      tables_.push_back({flat_[group].data(), static_cast<uint32_t>(widest), 0});
    }
    kvb_step step{};
    step.struct_size = sizeof step;
    step.token_count = static_cast<uint32_t>(tokens.size());
    step.sequence_count = static_cast<uint32_t>(lengths.size());
    step.output_count = static_cast<uint32_t>(output_rows.size());
    step.tokens = tokens.data();
    step.embeddings = embeddings.empty() ? nullptr : embeddings.data();
    step.positions = positions.data();
    step.sequence_of = sequence_of.data();
    step.lengths = lengths.data();
    step.tables = tables_.data();
    step.output_rows = output_rows.data();
    step.trace = trace;
    step.trace_user = trace_user;
    step.embedding_count = embedding_count;
    step.group_count = static_cast<uint32_t>(groups);
    return step;
  }

  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions, sequence_of, lengths, output_rows;
  std::vector<float> embeddings;
  uint32_t embedding_count = 0;
  std::vector<std::vector<std::vector<uint32_t>>> pages;  // [sequences][groups][...]
  kvb_trace_fn trace = nullptr;
  void* trace_user = nullptr;

 private:
  std::vector<std::vector<uint32_t>> flat_;
  std::vector<kvb_page_table> tables_;
};

// Runs a step to its end: [O][width].
inline std::vector<float> run_step(const TestDevice& device, kvb_queue* queue, const TestProgram& program,
                                   kvb_cache* cache, StepData& data) {
  kv_error error{};
  const kvb_step step = data.view();
  std::vector<float> out(size_t{step.output_count} * program.output_width);
  uint64_t ticket = 0;
  expect_ok(device.api->queue_submit(queue, program.get(), cache, &step, out.data(), out.size(), &ticket, &error),
            error, "queue_submit");
  expect_ok(device.api->queue_wait(queue, ticket, KVB_WAIT_FOREVER, &error), error, "queue_wait");
  return out;
}

}  // namespace kvasir::testing
