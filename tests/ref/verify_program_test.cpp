// SPDX-License-Identifier: MIT
//
// Malformed programs: each field broken once, with the status and the sentence; then thousands of random breakages, of
// which none may do more than be refused. Run under sanitizers these also show that nothing is read out of bounds.
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "ref_fixture.h"
#include "small_model.h"

namespace kvasir::testing {
namespace {

class VerifyProgram : public RefTest {
 protected:
  VerifyProgram() : builder(SmallModel::program({})) {
    for (const Tensor& tensor : builder.weights) {
      const kvb_weight_desc desc{sizeof desc, tensor.type,         tensor.depth,        tensor.rows, tensor.width,
                                 0,           tensor.bytes.data(), tensor.bytes.size(), nullptr,     nullptr};
      kvb_weight* weight = nullptr;
      EXPECT_EQ(api().weight_create(device.get(), &desc, &weight, nullptr), KV_OK);
      owned.emplace_back(weight, api().weight_destroy);
      weights.push_back(weight);
    }
  }

  kv_status compile(const kvb_program_desc& desc, const kvb_cache_desc& cache, kvb_program** program) {
    return api().program_compile(device.get(), &desc, &cache, weights.data(), static_cast<uint32_t>(weights.size()),
                                 program, &error);
  }

  // Compiling what `change` makes of the model must fail so.
  void refused(const std::function<void(ProgramBuilder&)>& change, kv_status status, const std::string& sentence) {
    ProgramBuilder broken = builder;
    change(broken);
    refused_desc(broken.desc(), status, sentence);
  }
  void refused_desc(const kvb_program_desc& desc, kv_status status, const std::string& sentence) {
    const uint64_t before = host.live_bytes;
    const kvb_cache_desc cache = spec.desc();
    kvb_program* program = nullptr;
    error = {};
    EXPECT_EQ(compile(desc, cache, &program), status) << sentence;
    EXPECT_EQ(error.code, status);
    EXPECT_NE(std::string(error.message).find(sentence), std::string::npos)
        << error.message << "\n  wanted: " << sentence;
    EXPECT_EQ(program, nullptr);
    EXPECT_EQ(host.live_bytes, before);
  }
  void refused_op(uint16_t code, const std::function<void(kvb_op&)>& change, kv_status status,
                  const std::string& sentence) {
    refused([&](ProgramBuilder& b) { change(first(b, code)); }, status, sentence);
  }

  static kvb_op& first(ProgramBuilder& b, uint16_t code) {
    for (kvb_op& op : b.ops) {
      if (op.code == code) return op;
    }
    throw std::logic_error("no such op in the model");
  }
  static kvb_value& value_of(ProgramBuilder& b, uint16_t code, uint32_t input) {
    return b.values[first(b, code).in[input]];
  }

  ProgramBuilder builder;
  CacheSpec spec = SmallModel::cache(KV_TYPE_F32, 4);
  std::vector<Owned<kvb_weight>> owned;
  std::vector<kvb_weight*> weights;
  kv_error error{};
};

TEST_F(VerifyProgram, AcceptsTheModel) {
  const kvb_program_desc desc = builder.desc();
  const kvb_cache_desc cache = spec.desc();
  uint32_t op = 7;
  EXPECT_EQ(api().program_check(device.get(), &desc, &cache, &op, &error), KV_OK) << error.message;
  EXPECT_EQ(op, KVB_NONE);
  kvb_program* program = nullptr;
  ASSERT_EQ(compile(desc, cache, &program), KV_OK) << error.message;
  api().program_destroy(program);
}

// KVB-7, KVB-11, for this and the tests below.
TEST_F(VerifyProgram, Description) {
  const auto desc_with = [&](auto change) {
    kvb_program_desc desc = builder.desc();
    change(desc);
    return desc;
  };
  refused_desc(desc_with([](auto& d) { d.struct_size = 0; }), KV_INVALID_ARGUMENT, "the program has struct_size 0");
  refused_desc(desc_with([](auto& d) { d.flags = 2; }), KV_UNSUPPORTED, "unknown flags 0x2");
  refused_desc(desc_with([](auto& d) { d.reserved = 1; }), KV_UNSUPPORTED, "reserved");
  refused_desc(desc_with([](auto& d) { d.max_tokens = 0; }), KV_INVALID_ARGUMENT, "for 0 tokens");
  refused_desc(desc_with([](auto& d) { d.max_tokens = UINT32_MAX; }), KV_INVALID_ARGUMENT, "for 4294967295 tokens");
  refused_desc(desc_with([](auto& d) { d.max_tokens = INT32_MAX; }), KV_INVALID_ARGUMENT, "the scratch has");
  refused_desc(desc_with([](auto& d) { d.max_sequences = 0; }), KV_INVALID_ARGUMENT, "0 sequences");
  refused_desc(desc_with([](auto& d) { d.max_length = 0; }), KV_INVALID_ARGUMENT, "length 0");
  refused_desc(desc_with([](auto& d) { d.compute_mode = 0; }), KV_INVALID_ARGUMENT, "compute mode 0");
  refused_desc(desc_with([](auto& d) { d.values = nullptr; }), KV_INVALID_ARGUMENT, "the array of values is NULL");
  refused_desc(desc_with([](auto& d) { d.value_stride = 31; }), KV_INVALID_ARGUMENT, "a stride of 31 bytes");
  refused_desc(desc_with([](auto& d) { d.ops = nullptr; }), KV_INVALID_ARGUMENT, "the array of ops is NULL");
  refused_desc(desc_with([](auto& d) { d.op_stride = 0; }), KV_INVALID_ARGUMENT, "a stride of 0 bytes");
  refused_desc(desc_with([](auto& d) { d.op_count = 0; }), KV_INVALID_ARGUMENT, "no ops");
  refused_desc(desc_with([](auto& d) { d.value_count = 1; }), KV_INVALID_ARGUMENT, "no output value");
  refused_desc(desc_with([](auto& d) { d.blob = nullptr; }), KV_INVALID_ARGUMENT, "the blob is NULL");
  refused_desc(desc_with([](auto& d) { d.blob_bytes = 0; }), KV_INVALID_ARGUMENT, "outside the blob");
  refused_desc(desc_with([](auto& d) { d.blob_bytes -= 1; }), KV_INVALID_ARGUMENT, "frequencies are outside the blob");
  refused_desc(desc_with([](auto& d) { d.blob_bytes = UINT64_MAX; }), KV_INVALID_ARGUMENT, "the blob has");
  refused_desc(desc_with([](auto& d) { d.scratch_bytes -= 64; }), KV_INVALID_ARGUMENT, "the scratch has");
  refused_desc(desc_with([](auto& d) { d.scratch_bytes = UINT64_MAX; }), KV_OUT_OF_MEMORY,
               "18446744073709551615 bytes");
  refused_desc(desc_with([](auto& d) { d.op_count -= 1; }), KV_INVALID_ARGUMENT, "no op writes the program's output");
}

TEST_F(VerifyProgram, Values) {
  const auto of = [](auto change) {
    return [change](ProgramBuilder& b) { change(value_of(b, KVB_OP_RMS_NORM, 0)); };  // x, [T, 8]
  };
  refused(of([](kvb_value& v) { v.kind = 9; }), KV_UNSUPPORTED, "unknown kind 9");
  refused(of([](kvb_value& v) { v.type = KV_TYPE_F16; }), KV_INVALID_ARGUMENT, "has type f16");
  refused(of([](kvb_value& v) { v.rows = 5; }), KV_INVALID_ARGUMENT, "neither tokens nor outputs");
  refused(of([](kvb_value& v) { v.width = 0; }), KV_INVALID_ARGUMENT, "[1][1][0]");
  refused(of([](kvb_value& v) { v.depth = 0; }), KV_INVALID_ARGUMENT, "[0][1][8]");
  refused(of([](kvb_value& v) { v.width = UINT32_MAX; }), KV_INVALID_ARGUMENT, "[1][1][4294967295]");
  refused(of([](kvb_value& v) { v.width = v.depth = INT32_MAX; }), KV_INVALID_ARGUMENT, "too many bytes");
  refused(of([](kvb_value& v) { v.reserved = 1; }), KV_UNSUPPORTED, "reserved");
  refused(of([](kvb_value& v) { v.place = 4; }), KV_INVALID_ARGUMENT, "at offset 4");
  refused(of([](kvb_value& v) { v.place = UINT64_MAX - 63; }), KV_INVALID_ARGUMENT, "at offset 18446744073709551552");
  const auto weight = [](auto change) {
    return [change](ProgramBuilder& b) { change(value_of(b, KVB_OP_LINEAR, 1)); };  // Wq, [24, 8]
  };
  refused(weight([](kvb_value& v) { v.type = 16; }), KV_UNSUPPORTED, "unknown type 16");
  refused(weight([](kvb_value& v) { v.type = KV_TYPE_Q4_K; }), KV_INVALID_ARGUMENT, "blocks are 256 wide");
  refused(weight([](kvb_value& v) { v.type = KV_TYPE_F16; }), KV_INVALID_ARGUMENT,
          "the program expects f16 [1][24][8]");
  refused(weight([](kvb_value& v) { v.rows = 25; }), KV_INVALID_ARGUMENT, "expects f32 [1][25][8]");
  refused(weight([](kvb_value& v) { v.place = 1000; }), KV_INVALID_ARGUMENT, "is weight 1000 of");
  refused([](ProgramBuilder& b) { b.output(3); }, KV_INVALID_ARGUMENT, "are both the program's output");
  refused([](ProgramBuilder& b) { b.values[b.ops.back().out[0]].place = 64; }, KV_INVALID_ARGUMENT, "goes to the host");
  refused([](ProgramBuilder& b) { b.values[b.ops.back().out[0]].rows = KVB_ROWS_TOKENS; }, KV_INVALID_ARGUMENT,
          "goes to the host");
}

// KVB-12
TEST_F(VerifyProgram, FormOfOps) {
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.code = 10; }, KV_UNSUPPORTED, "unknown code 10");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.flags = 2; }, KV_UNSUPPORTED, "unknown flags 0x2");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.group = 7; }, KV_UNSUPPORTED, "unknown group 7");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.in[2] = 0; }, KV_UNSUPPORTED, "has no input 2");
  refused_op(
      KVB_OP_LINEAR, [](kvb_op& op) { op.in[3] = 0; }, KV_UNSUPPORTED, "has no input 3");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.in[1] = KVB_NONE; }, KV_INVALID_ARGUMENT, "lacks input 1");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.in[1] = 5000; }, KV_INVALID_ARGUMENT, "is value 5000 of");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.out[0] = KVB_NONE; }, KV_INVALID_ARGUMENT, "lacks output 0");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.out[0] = 5000; }, KV_INVALID_ARGUMENT, "is value 5000 of");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.out[1] = 0; }, KV_UNSUPPORTED, "has no output 1");
  refused_op(
      KVB_OP_ADD, [](kvb_op& op) { op.param[5] = 1; }, KV_UNSUPPORTED, "sets parameter 5");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_LINEAR).out[0] = first(b, KVB_OP_LINEAR).in[1]; },
          KV_INVALID_ARGUMENT, "is a weight");
  kvb_program_desc desc = builder.desc();
  const kvb_cache_desc cache = spec.desc();
  std::vector<kvb_op> ops = builder.ops;
  ops[4].code = 999;
  desc.ops = ops.data();
  uint32_t op = 0;
  EXPECT_EQ(api().program_check(device.get(), &desc, &cache, &op, &error), KV_UNSUPPORTED);
  EXPECT_EQ(op, 4u);
}

TEST_F(VerifyProgram, ShapesAndParameters) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused_op(
      KVB_OP_EMBED, [&](kvb_op& op) { op.param[0] = bits(nan); }, KV_INVALID_ARGUMENT, "scale is not finite");
  refused([](ProgramBuilder& b) { value_of(b, KVB_OP_EMBED, 0).width = 9; }, KV_INVALID_ARGUMENT, "not [vocab, n]");
  refused_op(
      KVB_OP_RMS_NORM, [](kvb_op& op) { op.param[0] = bits(-1); }, KV_INVALID_ARGUMENT, "eps is negative");
  refused_op(
      KVB_OP_RMS_NORM, [](kvb_op& op) { op.param[1] = 3; }, KV_INVALID_ARGUMENT, "does not divide the row");
  refused_op(
      KVB_OP_RMS_NORM, [](kvb_op& op) { op.param[1] = 4; }, KV_INVALID_ARGUMENT, "not an f32 vector");
  refused_op(
      KVB_OP_LINEAR, [](kvb_op& op) { op.param[0] = 1; }, KV_INVALID_ARGUMENT, "passes the weight's last row");
  refused_op(
      KVB_OP_LINEAR, [](kvb_op& op) { op.param[0] = UINT32_MAX; }, KV_INVALID_ARGUMENT, "last row");
  refused_op(
      KVB_OP_LINEAR, [](kvb_op& op) { op.in[2] = op.in[1]; }, KV_INVALID_ARGUMENT, "the bias is not");
  refused([](ProgramBuilder& b) { value_of(b, KVB_OP_LINEAR, 1).width = 4; }, KV_INVALID_ARGUMENT, "not [out, in]");
  refused_op(
      KVB_OP_ROPE, [](kvb_op& op) { op.param[0] = 3; }, KV_INVALID_ARGUMENT, "heads * head_dim");
  refused_op(
      KVB_OP_ROPE, [](kvb_op& op) { op.param[1] = 0; }, KV_INVALID_ARGUMENT, "heads * head_dim");
  refused_op(
      KVB_OP_ROPE, [](kvb_op& op) { op.param[2] = 4; }, KV_INVALID_ARGUMENT, "outside the blob or not aligned");
  refused_op(
      KVB_OP_ROPE, [](kvb_op& op) { op.param[2] = 4096; }, KV_INVALID_ARGUMENT, "outside the blob");
  const auto rope = [](auto change) {
    return [change](ProgramBuilder& b) { change(*reinterpret_cast<kvb_rope*>(b.blob.data())); };
  };
  refused(rope([](kvb_rope& r) { r.pairing = 3; }), KV_INVALID_ARGUMENT, "pairing is unknown");
  refused(rope([](kvb_rope& r) { r.first = 1; }), KV_INVALID_ARGUMENT, "passes the head's end");
  refused(rope([](kvb_rope& r) { r.first = UINT32_MAX; }), KV_INVALID_ARGUMENT, "passes the head's end");
  refused(rope([](kvb_rope& r) { r.pairs = UINT32_MAX; }), KV_INVALID_ARGUMENT, "outside the blob");
  refused(rope([nan](kvb_rope& r) { r.magnitude = nan; }), KV_INVALID_ARGUMENT, "magnitude is not finite");
  refused([](ProgramBuilder& b) { b.blob[2] = std::numeric_limits<double>::infinity(); }, KV_INVALID_ARGUMENT,
          "a frequency is not finite");
  refused_op(
      KVB_OP_KV_STORE, [](kvb_op& op) { op.param[0] = 2; }, KV_INVALID_ARGUMENT, "no such layer");
  refused_op(
      KVB_OP_KV_STORE, [](kvb_op& op) { op.in[1] = KVB_NONE; }, KV_INVALID_ARGUMENT, "the values are not");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_KV_STORE).in[0] = first(b, KVB_OP_ATTENTION).in[0]; },
          KV_INVALID_ARGUMENT, "the keys are not");
  refused_op(
      KVB_OP_ATTENTION, [](kvb_op& op) { op.param[0] = 9; }, KV_INVALID_ARGUMENT, "no such layer");
  refused_op(
      KVB_OP_ATTENTION, [](kvb_op& op) { op.param[1] = 3; }, KV_INVALID_ARGUMENT, "no multiple");
  refused_op(
      KVB_OP_ATTENTION, [](kvb_op& op) { op.param[1] = 0; }, KV_INVALID_ARGUMENT, "no multiple");
  refused_op(
      KVB_OP_ATTENTION, [](kvb_op& op) { op.param[1] = 2; }, KV_INVALID_ARGUMENT, "the queries are not");
  refused_op(
      KVB_OP_ATTENTION, [&](kvb_op& op) { op.param[2] = bits(nan); }, KV_INVALID_ARGUMENT, "scale or soft-cap");
  refused_op(
      KVB_OP_ATTENTION, [](kvb_op& op) { op.param[3] = bits(-1); }, KV_INVALID_ARGUMENT, "scale or soft-cap");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_ATTENTION).in[1] = first(b, KVB_OP_RMS_NORM).in[1]; },
          KV_INVALID_ARGUMENT, "the sinks are not");
  refused_op(
      KVB_OP_GLU, [](kvb_op& op) { op.param[0] = 0; }, KV_INVALID_ARGUMENT, "activation is unknown");
  refused_op(
      KVB_OP_GLU, [](kvb_op& op) { op.in[1] = KVB_NONE; }, KV_INVALID_ARGUMENT, "gate's width");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_ADD).in[1] = first(b, KVB_OP_GLU).in[0]; }, KV_INVALID_ARGUMENT,
          "differ in shape");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_SELECT_ROWS).out[0] = b.tokens(8); }, KV_INVALID_ARGUMENT,
          "not [O, n]");
}

TEST_F(VerifyProgram, FlowOfData) {
  refused([](ProgramBuilder& b) { b.ops[1].in[0] = b.tokens(8); }, KV_INVALID_ARGUMENT, "before it is written");
  refused([](ProgramBuilder& b) { first(b, KVB_OP_LINEAR).out[0] = first(b, KVB_OP_LINEAR).in[0]; },
          KV_INVALID_ARGUMENT, "");
  refused(
      [](ProgramBuilder& b) {  // q over k's bytes: k is still needed
        b.values[first(b, KVB_OP_ATTENTION).in[0]].place = b.values[first(b, KVB_OP_KV_STORE).in[0]].place;
      },
      KV_INVALID_ARGUMENT, "which is still needed");
  // In place is for elementwise ops: a square LINEAR may not.
  ProgramBuilder square;
  const uint32_t x = square.tokens(2);
  square.op(KVB_OP_EMBED, {}, {x});
  square.op(KVB_OP_LINEAR, {x, square.matrix(2, 2, {1, 0, 0, 1})}, {x});
  square.op(KVB_OP_SELECT_ROWS, {x}, {square.output(2)});
  refused_desc(square.desc(), KV_INVALID_ARGUMENT, "cannot write value 0, its own input");
}

TEST_F(VerifyProgram, BytesAreSharedOverTime) {
  ProgramBuilder b;
  const uint32_t x = b.tokens(2), y = b.tokens(2), z = b.tokens(2);
  b.op(KVB_OP_EMBED, {}, {x});
  b.op(KVB_OP_ADD, {x, x}, {y});
  b.op(KVB_OP_ADD, {y, y}, {z});
  b.op(KVB_OP_SELECT_ROWS, {z}, {b.output(2)});
  b.values[z].place = b.values[x].place;  // x is not needed any more when z is written
  EXPECT_EQ(run_rows(b, {}, {1, 2}, 2), (std::vector<float>{4, 8}));
  b.ops[3].in[0] = x;  // now it is
  refused_desc(b.desc(), KV_INVALID_ARGUMENT, "op 2 (ADD) writes value 2 over value 0, which is still needed");
}

TEST_F(VerifyProgram, WeightsGiven) {
  const kvb_program_desc desc = builder.desc();
  const kvb_cache_desc cache = spec.desc();
  kvb_program* program = nullptr;
  weights[2] = nullptr;
  EXPECT_EQ(compile(desc, cache, &program), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "weight 2 is NULL or of another device");
  EXPECT_EQ(api().program_compile(device.get(), &desc, &cache, nullptr, 3, &program, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().program_compile(device.get(), &desc, nullptr, weights.data(), 3, &program, &error),
            KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().program_compile(device.get(), nullptr, &cache, weights.data(), 3, &program, &error),
            KV_INVALID_ARGUMENT);
}

// One to three random words of the values, ops or blob replaced. What still compiles must run.
TEST_F(VerifyProgram, RandomBreakage) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  const uint32_t words[] = {0, 1, 2, 3, 4, 6, 8, 24, 63, 64, 0x3f800000, 0x7fc00000, INT32_MAX, KVB_NONE, KVB_NONE - 1};
  uint32_t accepted = 0;
  const kvb_cache_desc cache_desc = spec.desc();
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, {8, 8});
  for (uint32_t round = 0; round < 4000; ++round) {
    ProgramBuilder broken = builder;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const uint32_t word = random() % 2 == 0 ? words[random() % std::size(words)] : random() % 70;
      const auto replace = [&](void* data, size_t bytes) {
        std::memcpy(static_cast<char*>(data) + random() % (bytes / 4) * 4, &word, 4);
      };
      const uint32_t part = random() % 8;
      if (part == 0) replace(broken.blob.data(), broken.blob.size() * 8);
      if (part >= 1 && part < 4) replace(broken.values.data(), broken.values.size() * sizeof(kvb_value));
      if (part >= 4) replace(broken.ops.data(), broken.ops.size() * sizeof(kvb_op));
    }
    kvb_program* program = nullptr;
    error = {};
    const kv_status status = compile(broken.desc(), cache_desc, &program);
    if (status != KV_OK) {
      ASSERT_NE(error.message[0], '\0');
      ASSERT_EQ(program, nullptr);
      continue;
    }
    ++accepted;
    const Owned<kvb_program> owner{program, api().program_destroy};
    StepData step;
    TestSequence sequence{0, {{0, 1}, {2, 3}}};
    step.append(sequence, {1, 2, 3, 4, 5});
    const kvb_step view = step.view();
    std::vector<float> out(64);
    uint64_t ticket = 0;
    if (api().queue_submit(queue.get(), program, cache.get(), &view, out.data(), out.size(), &ticket, &error) ==
        KV_OK) {
      ASSERT_EQ(api().queue_wait(queue.get(), ticket, 0, &error), KV_OK);
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 4000u);
}

}  // namespace
}  // namespace kvasir::testing
