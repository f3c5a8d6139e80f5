// SPDX-License-Identifier: MIT
//
// The group "program": tiny models, whose outputs must not depend on how their tokens were cut into steps, and must
// agree with the double reference; and traced programs.
#include "reference/quantize.h"
#include "suite/op_case.h"
#include "suite/tiny_model.h"

namespace kvasir::conformance {
namespace {

constexpr uint32_t kLength = 70;

std::vector<int32_t> part(const std::vector<int32_t>& tokens, size_t first, size_t count) {
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, tokens.size() - first))};
}

std::vector<float> in_chunks(Subject& subject, const TinyShape& shape, const testing::ProgramBuilder& program,
                             const std::vector<int32_t>& tokens, size_t chunk) {
  TinyWorld world(subject, shape, program);
  std::vector<float> out;
  for (size_t first = 0; first < tokens.size(); first += chunk) {
    const std::vector<float> rows = world.run({{0, part(tokens, first, chunk)}});
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

// The tokens as sequence 1, with two others that start earlier, later and in other chunks. All in one step each time.
std::vector<float> among_others(Subject& subject, const TinyShape& shape, const testing::ProgramBuilder& program,
                                const std::vector<int32_t>& tokens) {
  TinyWorld world(subject, shape, program);
  Random random(7);
  std::vector<float> out;
  world.run({{0, random.tokens(19, TinyShape::kVocab)}});
  for (size_t first = 0, step = 0; first < tokens.size(); first += 23, ++step) {
    std::vector<Append> appends{{0, random.tokens(1 + step, TinyShape::kVocab)}, {1, part(tokens, first, 23)}};
    if (step > 0) appends.push_back({2, random.tokens(9, TinyShape::kVocab)});
    const std::vector<float> rows = world.run(appends);
    const size_t width = shape.output_width(), own = appends[1].tokens.size();
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>((1 + step) * width);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(own * width));
  }
  return out;
}

// The types that "plain" and "block" stand for on this device.
TinyShape resolve(Subject& subject, TinyShape shape, bool block) {
  testing::TestHost host;
  const testing::TestDevice device = subject.open(host);
  if (shape.cache_type == KV_TYPE_DEFAULT) shape.cache_type = plain_cache_type(device);
  if (block) shape.weight_type = block_type_of(device);
  if (shape.weight_type == KV_TYPE_DEFAULT) throw Unsupported("the device takes no type in blocks of 32");
  shape.page_tokens = page_tokens_near(device, shape.page_tokens);
  return shape;
}

void run_ways(Subject& subject, TinyShape shape, bool block) {
  shape = resolve(subject, shape, block);
  const std::vector<int32_t> tokens = Random(3).tokens(kLength, TinyShape::kVocab);
  TinyWorld world(subject, shape);
  testing::StepData step = world.step_of({{0, tokens}});
  const std::vector<float> whole = world.run(step);
  check_logits(shape, whole, TinyReference(world).run(step), "a prefill");
  for (const size_t chunk : {1u, 7u, 64u}) {
    check_same(world, in_chunks(subject, shape, world.builder, tokens, chunk), whole,
               "chunks of " + std::to_string(chunk));
  }
  check_same(world, among_others(subject, shape, world.builder, tokens), whole, "a batch of three sequences");
  TinyShape other = shape;
  other.page_tokens = page_tokens_near(world.device, 24);
  check_same(world, in_chunks(subject, other, world.builder, tokens, 33), whole, "pages of another size");
}

// Rows chosen in the middle, none at all, and ids beside embedding rows.
void run_choice(Subject& subject) {
  const TinyShape shape = resolve(subject, {.cache_type = KV_TYPE_DEFAULT}, false);
  TinyWorld world(subject, shape);
  Random random(5);
  const std::vector<float> embeddings = random.normals(size_t{3} * TinyShape::kDim);
  testing::StepData step = world.step_of({{0, {4, ~2, 5, ~0, ~2}}, {1, {~1, 7}}}, true, embeddings);
  TinyReference reference(world);
  const Matrix all = reference.run(step);
  const std::vector<float> whole = world.run(step);
  check_logits(shape, whole, all, "all rows");
  step.output_rows = {1, 4, 6};
  check_logits(shape, world.run(step), reference.run(step), "rows 1, 4 and 6");
  step.output_rows.clear();
  check(world.run(step).empty(), "a step without outputs gave some");
}

struct TraceLog {
  std::vector<kvb_trace_record> records;
  std::vector<std::vector<float>> data;
};

void note(void* user, const kvb_trace_record* record) {
  auto* log = static_cast<TraceLog*>(user);
  log->records.push_back(*record);
  log->data.emplace_back(record->data, record->data + size_t{record->rows} * record->width);
}

void check_records(const TinyWorld& world, const TraceLog& log, const testing::StepData& step) {
  uint32_t next = 0;  // op whose value comes next
  for (const kvb_trace_record& record : log.records) {
    check(record.op < world.builder.ops.size(), "a trace record is of op " + std::to_string(record.op));
    const kvb_op& op = world.builder.ops[record.op];
    if (record.what != KVB_TRACE_VALUE) {
      check(op.code == KVB_OP_ATTENTION, "scores or weights of an op that is no ATTENTION");
      check(record.rows == 1 && record.width == step.positions[record.token] + 1 - record.first_position,
            "a trace row of token " + std::to_string(record.token) + " has the width " + std::to_string(record.width));
      continue;
    }
    while (world.builder.ops[next].out[0] == KVB_NONE) ++next;
    check(record.op == next, "the value of op " + std::to_string(record.op) + " came where that of op " +
                                 std::to_string(next) + " was due");
    const kvb_value& value = world.builder.values[op.out[0]];
    const size_t rows = value.rows == KVB_ROWS_TOKENS ? step.tokens.size() : step.output_rows.size();
    check(record.rows == rows && record.width == value.width, "the value of op " + std::to_string(record.op) + " is " +
                                                                  std::to_string(record.rows) + " x " +
                                                                  std::to_string(record.width));
    ++next;
  }
  check(next == world.builder.ops.size(), "the trace ended before op " + std::to_string(next));
}

void run_trace(Subject& subject, TinyShape shape, bool block) {
  shape = resolve(subject, shape, block);
  TinyShape traced_shape = shape;
  traced_shape.traced = true;
  TinyWorld plain(subject, shape), traced(subject, traced_shape);
  const std::vector<int32_t> tokens = Random(9).tokens(21, TinyShape::kVocab);
  for (const auto& chunk : {part(tokens, 0, 17), part(tokens, 17, 1), part(tokens, 18, 3)}) {
    const std::vector<float> want = plain.run({{0, chunk}});
    testing::StepData step = traced.step_of({{0, chunk}});
    TraceLog log;
    step.trace = note;
    step.trace_user = &log;
    const std::vector<float> got = traced.run(step);
    check_same(traced, got, want, "a traced step", true);
    check_records(traced, log, step);
    check_same(traced, log.data.back(), want, "the last traced value", true);
    testing::StepData again = step;
    again.trace = nullptr;
    check_same(traced, traced.run(again), want, "a traced program without a callback", true);
  }
}

}  // namespace

void add_program_cases(std::vector<Case>& cases) {
  struct Weights {
    const char* label;
    uint32_t type;
    bool block;
  };
  for (const Weights& weights :
       {Weights{"F32", KV_TYPE_F32, false}, {"F16", KV_TYPE_F16, false}, {"block", KV_TYPE_DEFAULT, true}}) {
    const bool block = weights.block;
    for (const uint32_t window : {0u, 13u}) {
      for (const uint32_t mode : kModes) {
        const Profile profile = block || window > 0 ? Profile::kFull : Profile::kCore;
        TinyShape shape;
        shape.weight_type = weights.type;
        shape.window = window;
        shape.compute_mode = mode;
        const std::string stem = std::string(weights.label) + "/" + mode_label(mode) + (window > 0 ? "/window" : "");
        for (const uint32_t cache_type : {uint32_t{KV_TYPE_DEFAULT}, uint32_t{KV_TYPE_F32}, uint32_t{KV_TYPE_Q8_0}}) {
          shape.cache_type = cache_type;
          const bool plain = cache_type == KV_TYPE_DEFAULT;
          if (!plain && (window > 0 || weights.type == KV_TYPE_F16)) continue;
          cases.push_back({"program/" + stem + "/cache=" + (plain ? "plain" : type_label(cache_type)), "KVB-18 KVB-19",
                           plain ? profile : Profile::kFull,
                           [shape, block](Subject& subject) { run_ways(subject, shape, block); }});
        }
        shape.cache_type = KV_TYPE_DEFAULT;
        cases.push_back({"program/trace/" + stem, "KVB-21", profile,
                         [shape, block](Subject& subject) { run_trace(subject, shape, block); }});
      }
    }
  }
  cases.push_back({"program/choice", "KVB-22", Profile::kCore, run_choice});
}

}  // namespace kvasir::conformance
