// SPDX-License-Identifier: MIT
//
// Group faults, programs: a good one with one thing broken at a time, then with random words in it.
#include <random>

#include "suite/faults.h"

namespace kvasir::conformance {
namespace {

constexpr std::initializer_list<kv_status> kInvalid = {KV_INVALID_ARGUMENT, KV_UNSUPPORTED, KV_OUT_OF_MEMORY};
constexpr std::initializer_list<kv_status> kUnsupported = {KV_UNSUPPORTED};

struct ProgramFaults {
  explicit ProgramFaults(Subject& subject) : world(subject, host), wanted(world.run()) {
    for (const testing::Tensor& t : world.builder.weights) {
      const kvb_weight_desc desc{sizeof desc, t.type,         t.depth,        t.rows,  t.width,
                                 0,           t.bytes.data(), t.bytes.size(), nullptr, nullptr};
      kvb_weight* weight = nullptr;
      succeeds("weight_create",
               [&](kv_error* e) { return world.api().weight_create(world.device.get(), &desc, &weight, e); });
      owners.emplace_back(weight, world.api().weight_destroy);
      weights.push_back(weight);
    }
    live = host.live_bytes;
  }

  kv_status compile(const kvb_program_desc& desc, kvb_program** program, kv_error* error) const {
    const kvb_cache_desc cache = world.spec.desc();
    return world.api().program_compile(world.device.get(), &desc, &cache, weights.data(),
                                       static_cast<uint32_t>(weights.size()), program, error);
  }

  void refused(const std::string& what, std::initializer_list<kv_status> status, const kvb_program_desc& desc) const {
    kvb_program* program = nullptr;
    refuses("program_compile with " + what, status, [&](kv_error* e) { return compile(desc, &program, e); });
    check(program == nullptr, "program_compile with " + what + " wrote its result");
    check(host.live_bytes == live, "program_compile with " + what + " left memory behind");
  }
  void desc_refused(const char* what, std::initializer_list<kv_status> status,
                    void (*change)(kvb_program_desc&)) const {
    kvb_program_desc desc = world.builder.desc();
    change(desc);
    refused(what, status, desc);
  }
  void builder_refused(const char* what, std::initializer_list<kv_status> status,
                       void (*change)(ProgramBuilder&)) const {
    ProgramBuilder builder = world.builder;
    change(builder);
    refused(what, status, builder.desc());
  }

  // Nothing has suffered.
  void finish() {
    same_bits(world.run(), wanted, "a step after refused programs");
    kvb_program* program = nullptr;
    succeeds("program_compile of the good program",
             [&](kv_error* e) { return compile(world.builder.desc(), &program, e); });
    world.api().program_destroy(program);
  }

  TestHost host;
  SmallWorld world;
  std::vector<float> wanted;
  std::vector<Owned<kvb_weight>> owners;
  std::vector<kvb_weight*> weights;
  uint64_t live = 0;
};

uint32_t index_of(const ProgramBuilder& b, uint16_t code) {
  for (uint32_t i = 0; i < b.ops.size(); ++i) {
    if (b.ops[i].code == code) return i;
  }
  throw std::logic_error("no such op in the model");
}
kvb_op& op_of(ProgramBuilder& b, uint16_t code) { return b.ops[index_of(b, code)]; }
kvb_value& input_of(ProgramBuilder& b, uint16_t code, uint32_t i) { return b.values[op_of(b, code).in[i]]; }

void description(Subject& subject) {
  ProgramFaults f(subject);
  f.desc_refused("unknown flags", kUnsupported, [](auto& d) { d.flags = 0x40; });
  f.desc_refused("a reserved field", kUnsupported, [](auto& d) { d.reserved = 1; });
  f.desc_refused("max_tokens 0", kInvalid, [](auto& d) { d.max_tokens = 0; });
  f.desc_refused("max_tokens UINT32_MAX", kInvalid, [](auto& d) { d.max_tokens = UINT32_MAX; });
  f.desc_refused("max_sequences 0", kInvalid, [](auto& d) { d.max_sequences = 0; });
  f.desc_refused("max_length 0", kInvalid, [](auto& d) { d.max_length = 0; });
  f.desc_refused("compute mode 0", kInvalid, [](auto& d) { d.compute_mode = 0; });
  f.desc_refused("compute mode 9", kInvalid, [](auto& d) { d.compute_mode = 9; });
  f.desc_refused("values NULL", kInvalid, [](auto& d) { d.values = nullptr; });
  f.desc_refused("ops NULL", kInvalid, [](auto& d) { d.ops = nullptr; });
  f.desc_refused("no ops", kInvalid, [](auto& d) { d.op_count = 0; });
  f.desc_refused("the last op missing", kInvalid, [](auto& d) { d.op_count -= 1; });
  f.desc_refused("one value only", kInvalid, [](auto& d) { d.value_count = 1; });
  f.desc_refused("the blob NULL", kInvalid, [](auto& d) { d.blob = nullptr; });
  f.desc_refused("a blob of no bytes", kInvalid, [](auto& d) { d.blob_bytes = 0; });
  f.desc_refused("a blob that ends early", kInvalid, [](auto& d) { d.blob_bytes -= 8; });
  f.desc_refused("scratch that ends early", kInvalid, [](auto& d) { d.scratch_bytes -= 64; });
  f.finish();
}

void strides(Subject& subject) {
  ProgramFaults f(subject);
  f.desc_refused("a value stride of 31", kInvalid, [](auto& d) { d.value_stride = 31; });
  f.desc_refused("a value stride of 8", kInvalid, [](auto& d) { d.value_stride = 8; });
  f.desc_refused("an op stride of 0", kInvalid, [](auto& d) { d.op_stride = 0; });
  // The elements of a newer host: longer, first with zeros, then with something in the new part.
  struct WideValue {
    kvb_value value;
    uint64_t more;
  };
  struct WideOp {
    kvb_op op;
    uint64_t more;
  };
  std::vector<WideValue> values;
  std::vector<WideOp> ops;
  for (const kvb_value& value : f.world.builder.values) values.push_back({value, 0});
  for (const kvb_op& op : f.world.builder.ops) ops.push_back({op, 0});
  kvb_program_desc desc = f.world.builder.desc();
  desc.values = &values[0].value;
  desc.value_stride = sizeof(WideValue);
  desc.ops = &ops[0].op;
  desc.op_stride = sizeof(WideOp);
  kvb_program* program = nullptr;
  succeeds("program_compile with longer values and ops", [&](kv_error* e) { return f.compile(desc, &program, e); });
  f.world.reset();
  const kvb_step step = f.world.data.view();
  uint64_t ticket = 0;
  succeeds("queue_submit", [&](kv_error* e) {
    return f.world.api().queue_submit(f.world.queue.get(), program, f.world.cache.get(), &step, f.world.out.data(),
                                      f.world.out.size(), &ticket, e);
  });
  f.world.wait(ticket);
  f.world.api().program_destroy(program);
  same_bits(f.world.out, f.wanted, "a program of longer values and ops");
  values[3].more = 1;
  f.refused("a longer value that uses its new part", kUnsupported, desc);
  values[3].more = 0;
  ops[2].more = 1;
  f.refused("a longer op that uses its new part", kUnsupported, desc);
  f.finish();
}

void values(Subject& subject) {
  ProgramFaults f(subject);
  const auto norm_input = [&](const char* what, std::initializer_list<kv_status> s, void (*change)(ProgramBuilder&)) {
    f.builder_refused(what, s, change);
  };
  norm_input("a value of an unknown kind", kInvalid, [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).kind = 9; });
  norm_input("an activation of type f16", kInvalid,
             [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).type = KV_TYPE_F16; });
  norm_input("an activation of rows 5", kInvalid, [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).rows = 5; });
  norm_input("a value of width 0", kInvalid, [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).width = 0; });
  norm_input("a value of depth 0", kInvalid, [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).depth = 0; });
  norm_input("a value of width UINT32_MAX", kInvalid,
             [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).width = UINT32_MAX; });
  norm_input("a reserved field in a value", kUnsupported,
             [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).reserved = 1; });
  norm_input("scratch at offset 4", kInvalid, [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).place = 4; });
  norm_input("scratch at the end of the address space", kInvalid,
             [](auto& b) { input_of(b, KVB_OP_RMS_NORM, 0).place = UINT64_MAX - 63; });
  norm_input("a weight of an unknown type", kInvalid, [](auto& b) { input_of(b, KVB_OP_LINEAR, 1).type = 63; });
  norm_input("a weight of another type than given", kInvalid,
             [](auto& b) { input_of(b, KVB_OP_LINEAR, 1).type = KV_TYPE_BF16; });
  norm_input("a weight of more rows than given", kInvalid, [](auto& b) { input_of(b, KVB_OP_LINEAR, 1).rows += 1; });
  norm_input("a weight that was not given", kInvalid, [](auto& b) { input_of(b, KVB_OP_LINEAR, 1).place = 1000; });
  norm_input("two outputs", kInvalid, [](auto& b) { b.output(3); });
  f.finish();
}

void ops(Subject& subject) {
  ProgramFaults f(subject);
  const auto r = [&](const char* what, void (*change)(ProgramBuilder&)) { f.builder_refused(what, kInvalid, change); };
  r("an operand that is no value", [](auto& b) { op_of(b, KVB_OP_RMS_NORM).in[0] = 5000; });
  r("an operand missing", [](auto& b) { op_of(b, KVB_OP_RMS_NORM).in[0] = KVB_NONE; });
  r("a result missing", [](auto& b) { op_of(b, KVB_OP_RMS_NORM).out[0] = KVB_NONE; });
  r("an operand too many", [](auto& b) { op_of(b, KVB_OP_ADD).in[5] = op_of(b, KVB_OP_ADD).in[0]; });
  r("a result that is a weight", [](auto& b) { op_of(b, KVB_OP_RMS_NORM).out[0] = op_of(b, KVB_OP_LINEAR).in[1]; });
  r("LINEAR in place", [](auto& b) { op_of(b, KVB_OP_LINEAR).out[0] = op_of(b, KVB_OP_LINEAR).in[0]; });
  r("LINEAR beyond the rows of its weight", [](auto& b) { op_of(b, KVB_OP_LINEAR).param[0] = UINT32_MAX; });
  r("LINEAR of two activations", [](auto& b) { op_of(b, KVB_OP_LINEAR).in[1] = op_of(b, KVB_OP_LINEAR).in[0]; });
  r("a norm group that does not divide", [](auto& b) { op_of(b, KVB_OP_RMS_NORM).param[1] = 3; });
  r("ROPE of 0 heads", [](auto& b) { op_of(b, KVB_OP_ROPE).param[0] = 0; });
  r("ROPE with parameters outside the blob", [](auto& b) { op_of(b, KVB_OP_ROPE).param[2] = 1u << 20; });
  r("ROPE with parameters at byte 4", [](auto& b) { op_of(b, KVB_OP_ROPE).param[2] = 4; });
  r("KV_STORE in a layer that is not there", [](auto& b) { op_of(b, KVB_OP_KV_STORE).param[0] = 2; });
  r("ATTENTION in a layer that is not there", [](auto& b) { op_of(b, KVB_OP_ATTENTION).param[0] = UINT32_MAX; });
  r("ATTENTION of 0 heads", [](auto& b) { op_of(b, KVB_OP_ATTENTION).param[1] = 0; });
  r("ATTENTION whose heads do not divide", [](auto& b) { op_of(b, KVB_OP_ATTENTION).param[1] = 3; });
  r("GLU with an unknown activation", [](auto& b) { op_of(b, KVB_OP_GLU).param[0] = 77; });
  r("rows of tokens where rows of outputs are due",
    [](auto& b) { op_of(b, KVB_OP_SELECT_ROWS).out[0] = op_of(b, KVB_OP_SELECT_ROWS).in[0]; });
  r("unknown op flags", [](auto& b) { op_of(b, KVB_OP_ADD).flags = 0x4000; });
  f.finish();
}

void unknown_opcode(Subject& subject) {
  ProgramFaults f(subject);
  for (const uint16_t code : {uint16_t{0}, uint16_t{KVB_OP_CORE_END}, uint16_t{4711}, uint16_t{UINT16_MAX}}) {
    ProgramBuilder builder = f.world.builder;
    const uint32_t index = index_of(builder, KVB_OP_ROPE);
    builder.ops[index].code = code;
    const std::string what = "opcode " + std::to_string(code);
    f.refused(what, {KV_UNSUPPORTED, KV_INVALID_ARGUMENT}, builder.desc());
    const kvb_program_desc desc = builder.desc();
    const kvb_cache_desc cache = f.world.spec.desc();
    uint32_t first = 7777;
    refuses("program_check with " + what, kUnsupported,
            [&](kv_error* e) { return f.world.api().program_check(f.world.device.get(), &desc, &cache, &first, e); });
    check(first == index,
          "program_check with " + what + " at op " + std::to_string(index) + " names op " + std::to_string(first));
  }
  const kvb_program_desc good = f.world.builder.desc();
  const kvb_cache_desc cache = f.world.spec.desc();
  uint32_t first = 7777;
  succeeds("program_check of the good program",
           [&](kv_error* e) { return f.world.api().program_check(f.world.device.get(), &good, &cache, &first, e); });
  check(first == KVB_NONE, "program_check of a good program names op " + std::to_string(first));
  f.finish();
}

// Whatever program_check accepts must compile and run; the rest is refused with a sentence.
void random_programs(Subject& subject) {
  ProgramFaults f(subject);
  std::mt19937 engine(20);
  const auto random = [&](uint32_t below) { return static_cast<uint32_t>(engine() % below); };
  for (int round = 0; round < 3000; ++round) {
    ProgramBuilder b = f.world.builder;
    const uint32_t choices[] = {0, 1, 2, 3, 4, 8, random(64), random(4096), KVB_NONE - 1, KVB_NONE, random(UINT32_MAX)};
    const uint32_t word = choices[random(std::size(choices))];
    kvb_op& op = b.ops[random(static_cast<uint32_t>(b.ops.size()))];
    kvb_value& value = b.values[random(static_cast<uint32_t>(b.values.size()))];
    switch (random(9)) {
      case 0: op.code = static_cast<uint16_t>(word); break;
      case 1: op.in[random(6)] = word; break;
      case 2: op.out[random(2)] = word; break;
      case 3: op.param[random(6)] = word; break;
      case 4: value.rows = word; break;
      case 5: value.width = word; break;
      case 6: value.depth = word; break;
      case 7: value.kind = word; break;
      default: value.place = uint64_t{word} * (random(2) == 0 ? 64 : 1); break;
    }
    kvb_program* program = nullptr;
    kv_error error{};
    const kv_status status = f.compile(b.desc(), &program, &error);
    check(status == KV_OK || error.message[0] != '\0', "a random program was refused without a sentence");
    check((status == KV_OK) == (program != nullptr), "program_compile wrote its result on failure");
    if (program == nullptr) continue;
    const Owned<kvb_program> owner{program, f.world.api().program_destroy};
    f.world.reset();
    const kvb_step step = f.world.data.view();
    std::vector<float> out(4096);
    uint64_t ticket = 0;
    if (f.world.api().queue_submit(f.world.queue.get(), program, f.world.cache.get(), &step, out.data(), out.size(),
                                   &ticket, &error) == KV_OK) {
      f.world.wait(ticket);
    }
  }
  f.finish();
}

}  // namespace

void add_program_faults(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("faults/") + name, obligations, Profile::kCore, run});
  };
  add("program_description", "KVB-7 KVB-8 KVB-11", description);
  add("program_strides", "KVB-8", strides);
  add("program_values", "KVB-7 KVB-11", values);
  add("program_ops", "KVB-7 KVB-11", ops);
  add("unknown_opcode", "KVB-11 KVB-12", unknown_opcode);
  add("random_programs", "KVB-7 KVB-11", random_programs);
}

}  // namespace kvasir::conformance
