// SPDX-License-Identifier: MIT
//
// Appends the rows of an example one by one, prints what each step computed and what it found in the cache, and runs
// the whole again without a cache to compare.
#include "trace_example.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "commands.h"
#include "session.h"
#include "text.h"
#include "worked_examples.h"

namespace kvasir::cli {
namespace {

using ull = unsigned long long;
using Row = std::vector<float>;

// Short where that is exact (2, 0.5), else with four digits.
std::string number_text(float value) {
  std::string text = format("%.4f", static_cast<double>(value));
  std::string shorter = text.substr(0, text.find_last_not_of('0') + 1);
  if (shorter.back() == '.') shorter.pop_back();
  float back = 0;
  std::from_chars(shorter.data(), shorter.data() + shorter.size(), back);
  return back == value ? shorter : text;
}

// "[1.8199, 1.5105]"
std::string row_text(const float* data, size_t width) {
  std::string text = "[";
  for (size_t i = 0; i < width; i++) text += (i != 0 ? ", " : "") + number_text(data[i]);
  return text + "]";
}

// What one step reported, by layer and name.
struct Seen {
  std::map<std::pair<uint32_t, std::string>, Row> rows;

  static void receive(void* self, const kv_trace_record* record) {
    const size_t size = size_t{record->rows} * record->width;
    static_cast<Seen*>(self)->rows[{record->layer, record->name}] = Row(record->data, record->data + size);
  }
};

class ExampleRun {
 public:
  ExampleRun(kv_runtime* runtime, const WorkedExample& example, const DeviceFlags& flags)
      : example_(example),
        dim_(example.tokens[0].size()),
        model_(build_example(runtime, example)),
        context_(open_context(model_.get(), flags.context_options(), nullptr)) {}

  kv_context* context() const { return context_.get(); }
  // Appends the rows [first, first + count); the outputs of all of them.
  Matrix append(size_t first, size_t count);
  void print_step(size_t index);
  kv_context_info info() const { return get<kv_context_info>(kv_context_get_info, context_.get()); }

 private:
  void print_layer(uint32_t layer, size_t length, const Seen& seen) const;

  const WorkedExample& example_;
  size_t dim_;
  ModelPtr model_;
  ContextPtr context_;
};

Matrix ExampleRun::append(size_t first, size_t count) {
  Row rows;
  for (size_t i = first; i < first + count; i++) {
    const Row& token = example_.tokens[i % example_.tokens.size()];
    rows.insert(rows.end(), token.begin(), token.end());
  }
  auto input = sized<kv_step_input>();
  input.sequence = KV_DEFAULT_SEQUENCE;
  input.rows = rows.data();
  input.count = count;
  Matrix outputs;
  auto options = sized<kv_step_options>();
  options.outputs = KV_OUTPUT_ALL;
  options.row_user = &outputs;
  options.row = [](void* user, kv_sequence, uint64_t, const float* row, uint32_t width) {
    static_cast<Matrix*>(user)->emplace_back(row, row + width);
  };
  auto result = sized<kv_step_result>();
  call(kv_step, context_.get(), &input, size_t{1}, &options, &result);
  return outputs;
}

void ExampleRun::print_layer(uint32_t layer, size_t length, const Seen& seen) const {
  const auto line = [](const char* name, const std::string& text) { std::printf("  %-22s %s\n", name, text.c_str()); };
  const auto cached = [&](uint32_t what) {
    Row rows(length * dim_);
    call(kv_cache_read, context_.get(), KV_DEFAULT_SEQUENCE, layer, what, uint64_t{0}, uint64_t{length}, rows.data(),
         uint64_t{rows.size()});
    std::string text;
    for (size_t r = 0; r < length; r++) text += (r != 0 ? " " : "") + row_text(&rows[r * dim_], dim_);
    return text;
  };
  const auto traced = [&](const char* name) {
    const auto found = seen.rows.find({layer, name});
    return found != seen.rows.end() ? row_text(found->second.data(), found->second.size()) : std::string("-");
  };
  if (example_.layers.size() > 1) std::printf(" layer %u\n", layer + 1);
  line("q = x Wq", traced("q"));
  line("k = x Wk  (to cache)", traced("k"));
  line("v = x Wv  (to cache)", traced("v"));
  line("K rows  (from cache)", cached(KV_CACHE_K));
  line("V rows  (from cache)", cached(KV_CACHE_V));
  line("scores = scale q K", traced("scores"));
  line("weights = softmax", traced("weights"));
  line("output = weights V", traced("attn"));
}

void ExampleRun::print_step(size_t index) {
  Seen seen;
  const kv_context_info before = info();
  call(kv_context_set_trace, context_.get(), Seen::receive, static_cast<void*>(&seen));
  append(index, 1);
  call(kv_context_set_trace, context_.get(), kv_trace_fn{nullptr}, static_cast<void*>(nullptr));
  const kv_context_info after = info();
  std::printf("token %zu: x = %s\n", index + 1, row_text(example_.tokens[index].data(), dim_).c_str());
  for (uint32_t l = 0; l < example_.layers.size(); l++) print_layer(l, index + 1, seen);
  std::printf("  projections computed %llu, avoided %llu\n\n", ull{after.projections - before.projections},
              ull{after.projections_avoided - before.projections_avoided});
}

void print_matrices(const WorkedExample& example) {
  for (size_t l = 0; l < example.layers.size(); l++) {
    const std::pair<const char*, const Matrix&> matrices[] = {
        {"Wq", example.layers[l].q}, {"Wk", example.layers[l].k}, {"Wv", example.layers[l].v}};
    for (const auto& [name, matrix] : matrices) {
      std::string text;
      for (const Row& row : matrix) text += (text.empty() ? "" : ", ") + row_text(row.data(), row.size());
      std::printf("  layer %zu  %s = [%s]\n", l + 1, name, text.c_str());
    }
  }
  std::printf("  scale %s\n\n", number_text(example.scale).c_str());
}

bool same_bits(const Matrix& a, const Matrix& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

// The same rows step by step, and at once as a recomputation would; prints the outputs and whether the bits agree.
void compare_routes(kv_runtime* runtime, const WorkedExample& example, const DeviceFlags& flags) {
  const size_t count = example.tokens.size();
  ExampleRun stepwise(runtime, example, flags);
  Matrix with_cache;
  for (size_t i = 0; i < count; i++) with_cache.push_back(stepwise.append(i, 1)[0]);
  const Matrix at_once = ExampleRun(runtime, example, flags).append(0, count);
  std::string text;
  for (const Row& row : at_once) text += " " + row_text(row.data(), row.size());
  std::printf("all at once, without a cache: outputs%s\n", text.c_str());
  std::printf("token by token and all at once give %s\n",
              same_bits(with_cache, at_once) ? "the same bits" : "different bits");
}

// How much one step saves as the text grows.
void print_savings(ExampleRun& run) {
  size_t length = 0;
  for (const size_t target : {size_t{4}, size_t{100}, size_t{1000}}) {
    run.append(length, target - 1 - length);
    const uint64_t before = run.info().projections_avoided;
    run.append(target - 1, 1);
    const uint64_t avoided = run.info().projections_avoided - before;
    std::printf("the step to length %-4zu avoids %llu projections\n", target, ull{avoided});
    length = target;
  }
}

}  // namespace

int run_example(int number, DeviceFlags flags) {
  if (flags.kv_type == KV_TYPE_DEFAULT) flags.kv_type = KV_TYPE_F32;
  const WorkedExample& example = worked_example(number);
  const RuntimePtr runtime = open_runtime();
  ExampleRun run(runtime.get(), example, flags);
  std::printf("example %d: %s (on %s)\n", number, example.title, describe_context(run.context()).c_str());
  print_matrices(example);
  for (size_t i = 0; i < example.tokens.size(); i++) run.print_step(i);
  compare_routes(runtime.get(), example, flags);
  if (number == 1) {
    WorkedExample scaled = example;
    scaled.scale = 1.0F / std::sqrt(2.0F);
    const Matrix outputs = ExampleRun(runtime.get(), scaled, flags).append(0, scaled.tokens.size());
    std::printf("with scale 1/sqrt(2) the last output is %s\n",
                row_text(outputs.back().data(), outputs.back().size()).c_str());
  }
  if (number == 2) {
    ExampleRun longer(runtime.get(), example, flags);
    print_savings(longer);
  }
  return kSuccess;
}

}  // namespace kvasir::cli
