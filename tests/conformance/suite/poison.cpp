// SPDX-License-Identifier: MIT
//
// The group "poison": NaN, infinities and forbidden pages wherever a backend has no business: around its inputs, in
// rows it is not asked for, in scratch and cells that somebody else left behind. Results must be as without them.
#include <cmath>
#include <limits>

#include "reference/quantize.h"
#include "suite/guarded.h"
#include "suite/op_case.h"
#include "suite/tiny_model.h"

namespace kvasir::conformance {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

TinyShape shape_of(Subject& subject, uint32_t cache_type, uint32_t window, uint32_t page_tokens) {
  testing::TestHost host;
  const testing::TestDevice device = subject.open(host);
  TinyShape shape;
  shape.cache_type = cache_type == KV_TYPE_DEFAULT ? plain_cache_type(device) : cache_type;
  shape.window = window;
  shape.page_tokens = page_tokens_near(device, page_tokens);
  shape.limits = {48, 48, 4, 96};
  return shape;
}

std::vector<float> rows_of(float value) { return std::vector<float>(size_t{2} * TinyShape::kDim, value); }

// Steps of sequence 1 in a clean world, and in one where `disturb` acts before each step.
using Disturb = std::function<void(TinyWorld&, std::vector<Append>&, std::vector<float>& embeddings)>;
void compare_disturbed(Subject& subject, const TinyShape& shape, const Disturb& disturb) {
  TinyWorld clean(subject, shape), disturbed(subject, shape);
  const size_t width = shape.output_width();
  const std::vector<int32_t> tokens = Random(6).tokens(40, TinyShape::kVocab);
  for (size_t first = 0; first < 40; first += first == 0 ? 21 : first < 25 ? 1 : 9) {
    const size_t end = first == 0 ? 21 : first < 25 ? first + 1 : std::min<size_t>(40, first + 9);
    const Append own{1, {tokens.begin() + std::ptrdiff_t(first), tokens.begin() + std::ptrdiff_t(end)}};
    const std::vector<float> want = clean.run({own});
    std::vector<Append> appends{own};
    std::vector<float> embeddings;
    disturb(disturbed, appends, embeddings);
    testing::StepData step = disturbed.step_of(appends, true, embeddings);
    std::vector<float> got = disturbed.run(step);
    got.erase(got.begin(), got.end() - std::ptrdiff_t(own.tokens.size() * width));  // own rows are the last
    check_same(clean, got, want, "tokens " + std::to_string(first) + " to " + std::to_string(end - 1));
  }
}

// Pages that belong to nobody, the rest of the last page, and pages that the window has left behind.
void run_unowned(Subject& subject, uint32_t cache_type, uint32_t window, uint32_t page_tokens) {
  const TinyShape shape = shape_of(subject, cache_type, window, page_tokens);
  compare_disturbed(subject, shape, [](TinyWorld& world, std::vector<Append>&, std::vector<float>&) {
    world.poison_free_pages();
    const testing::TestSequence& own = world.sequences[1];
    if (world.shape.window == 0) return;
    const uint32_t lowest = own.length < world.shape.window ? 0 : own.length - world.shape.window + 1;
    for (uint32_t page = 0; page < lowest / world.shape.page_tokens; ++page) {
      if (own.pages[1][page] != KVB_NONE) world.poison_page(1, own.pages[1][page]);
      world.sequences[1].pages[1][page] = KVB_NONE;
    }
  });
}

// Sequences of the same step whose rows are not finite.
void run_neighbours(Subject& subject, uint32_t cache_type, uint32_t window, float value) {
  const TinyShape shape = shape_of(subject, cache_type, window, 16);
  compare_disturbed(subject, shape, [=](TinyWorld&, std::vector<Append>& appends, std::vector<float>& embeddings) {
    embeddings = rows_of(value);
    appends.insert(appends.begin(), {{0, {~0, ~1}}, {2, {3, ~1}}});
  });
}

// Activations and cells that an earlier step left: a large step of NaN, then a rewind. Also cells behind the own length.
void run_left_behind(Subject& subject, uint32_t cache_type, uint32_t window, float value) {
  const TinyShape shape = shape_of(subject, cache_type, window, 64);
  compare_disturbed(subject, shape, [=](TinyWorld& world, std::vector<Append>&, std::vector<float>&) {
    testing::TestSequence& own = world.sequences[1];
    const uint32_t length = own.length;
    const std::vector<int32_t> bad(24, ~0);
    testing::StepData step = world.step_of({{0, bad}, {1, bad}}, true, rows_of(value));
    const std::vector<float> out = world.run(step);
    check(!std::isfinite(out.back()), "a row that is not finite gave finite logits");
    own.length = length;
    world.sequences[0].length = 0;
  });
}

// A step whose arrays, with NaN before them, end where the process may read no more; and `out` filled with NaN.
void run_guarded(Subject& subject, uint32_t weight_type) {
  TinyShape shape = shape_of(subject, KV_TYPE_DEFAULT, 13, 16);
  shape.weight_type = weight_type;
  TinyWorld plain(subject, shape), world(subject, shape);
  GuardedMemory memory;
  for (const size_t count : {17u, 1u, 3u}) {
    const std::vector<int32_t> tokens = Random(count).tokens(count, TinyShape::kVocab);
    std::vector<Append> appends{{0, tokens}, {2, {~0}}};
    const std::vector<float> row = Random(8).normals(TinyShape::kDim);
    testing::StepData expected = plain.step_of(appends, true, row), data = world.step_of(appends, true, row);
    const std::vector<float> want = plain.run(expected);
    kvb_step step = data.view();
    step.tokens = memory.copy(step.tokens, step.token_count);
    step.positions = memory.copy(step.positions, step.token_count);
    step.sequence_of = memory.copy(step.sequence_of, step.token_count);
    step.output_rows = memory.copy(step.output_rows, step.output_count);
    step.lengths = memory.copy(step.lengths, step.sequence_count);
    step.embeddings = memory.copy(step.embeddings, TinyShape::kDim);
    std::vector<kvb_page_table> tables(step.tables, step.tables + step.group_count);
    for (kvb_page_table& table : tables) {
      table.pages = memory.copy(table.pages, size_t{step.sequence_count} * table.pages_per_sequence);
    }
    step.tables = memory.copy(tables.data(), tables.size());
    const std::vector<float> filled(want.size(), kNan);
    float* out = memory.copy(filled.data(), filled.size());
    uint64_t ticket = 0;
    succeeds("queue_submit", [&](kv_error* error) {
      return world.device.api->queue_submit(world.queue.get(), world.program->get(), world.cache.get(), &step, out,
                                            want.size(), &ticket, error);
    });
    succeeds("queue_wait", [&](kv_error* error) {
      return world.device.api->queue_wait(world.queue.get(), ticket, KVB_WAIT_FOREVER, error);
    });
    check_same(world, {out, out + want.size()}, want, "a step of " + std::to_string(count) + " tokens", true);
  }
}

// Rows of the weight beside the view are NaN, so are the biases beside it and rows of the table that no token names.
void run_view(Subject& subject, const std::string& name, uint32_t type, uint32_t mode) {
  constexpr uint32_t kRows = 19, kFirst = 3, kBehind = 30;
  const uint32_t width = block_elements(type) == 1 ? 37 : block_elements(type);
  OpCase test(name, 5, mode);
  testing::Tensor weight = test.random.weight(type, kFirst + kRows + kBehind, width);
  const size_t row_bytes = weight.bytes.size() / weight.rows;
  std::vector<float> bias = test.random.normals(weight.rows);
  for (uint32_t row = 0; row < weight.rows; ++row) {
    if (row >= kFirst && row < kFirst + kRows) continue;
    bias[row] = kNan;
    // Bytes of ones: NaN in every float format, codes and scales at their ends.
    std::fill_n(weight.bytes.begin() + std::ptrdiff_t(row * row_bytes), row_bytes, static_cast<unsigned char>(0xff));
  }
  const uint32_t w = test.builder.weight(weight), b = test.builder.vector(bias);
  std::vector<float> table = test.random.normals(size_t{7} * width);  // two rows more than the step names
  std::fill(table.begin() + std::ptrdiff_t(5 * width), table.end(), kNan);
  const uint32_t x = test.input(width, table), y = test.builder.tokens(kRows);
  test.op(KVB_OP_LINEAR, {x, w, b}, {y}, {kFirst});
  test.output(y);
  test.run(subject, op_limit(KVB_OP_LINEAR, type, mode));
}

// The rows that a step asks for are written, and nothing behind them.
void run_output(Subject& subject) {
  TinyWorld world(subject, shape_of(subject, KV_TYPE_DEFAULT, 0, 16));
  testing::StepData data = world.step_of({{0, Random(2).tokens(9, TinyShape::kVocab)}});
  data.output_rows = {2, 7};
  const size_t floats = 2 * TinyShape::kVocab;
  std::vector<float> out(floats + 64, kNan);
  const kvb_step step = data.view();
  uint64_t ticket = 0;
  succeeds("queue_submit", [&](kv_error* error) {
    return world.device.api->queue_submit(world.queue.get(), world.program->get(), world.cache.get(), &step, out.data(),
                                          out.size(), &ticket, error);
  });
  succeeds("queue_wait", [&](kv_error* error) {
    return world.device.api->queue_wait(world.queue.get(), ticket, KVB_WAIT_FOREVER, error);
  });
  for (size_t i = 0; i < out.size(); ++i) {
    check(std::isnan(out[i]) == (i >= floats), "float " + std::to_string(i) + " of the output is " +
                                                   std::to_string(out[i]) + " after a step of " +
                                                   std::to_string(floats));
  }
}

}  // namespace

void add_poison_cases(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, Profile profile, const std::function<void(Subject&)>& run) {
    cases.push_back({"poison/" + name, "KVB-16", profile, run});
  };
  for (uint32_t type = KV_TYPE_DEFAULT; type <= KV_TYPE_Q4_0; ++type) {
    for (const uint32_t window : {0u, 13u}) {
      const bool plain = type == KV_TYPE_DEFAULT;
      const std::string tail = std::string("/") + (plain ? "plain" : type_label(type)) + (window > 0 ? "/window" : "");
      const Profile profile = plain && window == 0 ? Profile::kCore : Profile::kFull;
      add("unowned" + tail, profile, [=](Subject& subject) { run_unowned(subject, type, window, 8); });
      add("large-page" + tail, profile, [=](Subject& subject) { run_unowned(subject, type, window, 256); });
      add("neighbours/NaN" + tail, profile, [=](Subject& s) { run_neighbours(s, type, window, kNan); });
      add("neighbours/Inf" + tail, profile, [=](Subject& s) { run_neighbours(s, type, window, kInfinity); });
      add("left-behind/NaN" + tail, profile, [=](Subject& s) { run_left_behind(s, type, window, kNan); });
      add("left-behind/Inf" + tail, profile, [=](Subject& s) { run_left_behind(s, type, window, kInfinity); });
    }
  }
  add("step/F32", Profile::kFull, [](Subject& subject) { run_guarded(subject, KV_TYPE_F32); });
  add("step/F16", Profile::kFull, [](Subject& subject) { run_guarded(subject, KV_TYPE_F16); });
  add("output", Profile::kCore, run_output);
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_IQ4_XS; ++type) {
    for (const uint32_t mode : kModes) {
      const std::string name = std::string("view/") + type_label(type) + "/" + mode_label(mode);
      add(name, type <= KV_TYPE_F16 ? Profile::kCore : Profile::kFull,
          [=](Subject& subject) { run_view(subject, name, type, mode); });
    }
  }
}

}  // namespace kvasir::conformance
