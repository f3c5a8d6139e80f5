// SPDX-License-Identifier: MIT
//
// Group faults, steps: a good one with one thing broken at a time, then with random words in it.
#include <random>

#include "suite/faults.h"

namespace kvasir::conformance {
namespace {

constexpr std::initializer_list<kv_status> kInvalid = {KV_INVALID_ARGUMENT};
constexpr std::initializer_list<kv_status> kUnsupported = {KV_UNSUPPORTED};

// The small model with three tokens of a first sequence and two of a second; what it gives is known.
struct StepFaults {
  explicit StepFaults(Subject& subject) : world(subject, host), wanted(world.run()) { world.reset(); }

  using Change = void (*)(StepData&, kvb_step&);

  // The step after `change`, whose arrays are those of the StepData it is given.
  void refused(const char* what, std::initializer_list<kv_status> status, Change change) {
    StepData broken = world.data;
    kvb_step step = broken.view();
    change(broken, step);
    uint64_t ticket = 0;
    refuses(std::string("queue_submit with ") + what, status,
            [&](kv_error* e) { return world.submit(step, &ticket, e); });
    check(ticket == 0, std::string("queue_submit with ") + what + " handed out a ticket");
    check(world.untouched(), std::string("queue_submit with ") + what + " wrote its output");
  }

  void finish() { same_bits(world.run(), wanted, "a step after refused ones"); }

  TestHost host;
  SmallWorld world;
  std::vector<float> wanted;
};

kvb_page_table& table(kvb_step& step, uint32_t group) { return const_cast<kvb_page_table&>(step.tables[group]); }
uint32_t& page(kvb_step& step, uint32_t group, uint32_t i) {
  return const_cast<uint32_t&>(step.tables[group].pages[i]);
}

void counts(Subject& subject) {
  StepFaults f(subject);
  f.refused("no tokens", kInvalid, [](auto&, kvb_step& s) { s.token_count = 0; });
  f.refused("more tokens than the program takes", kInvalid, [](auto&, kvb_step& s) { s.token_count = 17; });
  f.refused("no sequences", kInvalid, [](auto&, kvb_step& s) { s.sequence_count = 0; });
  f.refused("more sequences than the program takes", kInvalid, [](auto&, kvb_step& s) { s.sequence_count = 5; });
  f.refused("a sequence too few", kInvalid, [](auto&, kvb_step& s) { s.sequence_count = 1; });
  f.refused("more output rows than the program gives", kInvalid, [](auto&, kvb_step& s) { s.output_count = 17; });
  f.refused("a page table too few", kInvalid, [](auto&, kvb_step& s) { s.group_count = 1; });
  f.refused("a page table too many", kInvalid, [](auto&, kvb_step& s) { s.group_count = 3; });
  f.finish();
}

void pointers(Subject& subject) {
  StepFaults f(subject);
  f.refused("tokens NULL", kInvalid, [](auto&, kvb_step& s) { s.tokens = nullptr; });
  f.refused("positions NULL", kInvalid, [](auto&, kvb_step& s) { s.positions = nullptr; });
  f.refused("sequence_of NULL", kInvalid, [](auto&, kvb_step& s) { s.sequence_of = nullptr; });
  f.refused("lengths NULL", kInvalid, [](auto&, kvb_step& s) { s.lengths = nullptr; });
  f.refused("tables NULL", kInvalid, [](auto&, kvb_step& s) { s.tables = nullptr; });
  f.refused("output_rows NULL", kInvalid, [](auto&, kvb_step& s) { s.output_rows = nullptr; });
  f.refused("embeddings NULL", kInvalid, [](auto&, kvb_step& s) { s.embeddings = nullptr; });
  f.refused("reserved_components", kUnsupported, [](auto&, kvb_step& s) { s.reserved_components = &s; });
  f.refused("reserved_parents", kUnsupported, [](auto&, kvb_step& s) { s.reserved_parents = &s; });
  f.refused("reserved_hidden", kUnsupported, [](auto&, kvb_step& s) { s.reserved_hidden = &s; });
  f.finish();
}

void tokens(Subject& subject) {
  StepFaults f(subject);
  f.refused("a token beyond the vocabulary", kInvalid, [](StepData& d, auto&) { d.tokens[0] = SmallModel::kVocab; });
  f.refused("token INT32_MAX", kInvalid, [](StepData& d, auto&) { d.tokens[4] = INT32_MAX; });
  f.refused("an embedding row that is not there", kInvalid, [](StepData& d, auto&) { d.tokens[2] = ~1; });
  f.refused("token INT32_MIN", kInvalid, [](StepData& d, auto&) { d.tokens[1] = INT32_MIN; });
  f.refused("no embedding rows", kInvalid, [](auto&, kvb_step& s) { s.embedding_count = 0; });
  f.finish();
}

void sequences(Subject& subject) {
  StepFaults f(subject);
  f.refused("a token of sequence 2 of 2", kInvalid, [](StepData& d, auto&) { d.sequence_of[4] = 2; });
  f.refused("a token of sequence UINT32_MAX", kInvalid, [](StepData& d, auto&) { d.sequence_of[0] = UINT32_MAX; });
  f.refused("tokens of a sequence that are not adjacent", kInvalid, [](StepData& d, auto&) {
    d.sequence_of = {0, 1, 0, 0, 1};
    d.positions = {0, 0, 1, 2, 1};
  });
  f.refused("a position that is left out", kInvalid, [](StepData& d, auto&) { d.positions[1] = 2; });
  f.refused("a position twice", kInvalid, [](StepData& d, auto&) { d.positions[4] = 0; });
  f.refused("position UINT32_MAX", kInvalid, [](StepData& d, auto&) { d.positions[4] = UINT32_MAX; });
  f.refused("a length below the positions", kInvalid, [](StepData& d, auto&) { d.lengths[0] = 2; });
  f.refused("a length above the positions", kInvalid, [](StepData& d, auto&) { d.lengths[1] = 5; });
  f.refused("a length beyond the program's", kInvalid, [](StepData& d, auto&) {
    d.lengths[1] = 65;
    d.positions[3] = 63;
    d.positions[4] = 64;
  });
  f.finish();
}

void pages(Subject& subject) {
  StepFaults f(subject);
  f.refused("pages NULL", kInvalid, [](auto&, kvb_step& s) { table(s, 0).pages = nullptr; });
  f.refused("a reserved field in a page table", kUnsupported, [](auto&, kvb_step& s) { table(s, 1).reserved = 1; });
  f.refused("page tables without pages", kInvalid, [](auto&, kvb_step& s) { table(s, 0).pages_per_sequence = 0; });
  f.refused("a page that the cache does not have", kInvalid,
            [](auto&, kvb_step& s) { page(s, 0, 0) = SmallWorld::kPages; });
  f.refused("no page where one is read", kInvalid, [](auto&, kvb_step& s) { page(s, 0, 0) = KVB_NONE; });
  f.refused("page UINT32_MAX - 1 in the second group", kInvalid,
            [](auto&, kvb_step& s) { page(s, 1, 0) = UINT32_MAX - 1; });
  f.finish();
}

void outputs(Subject& subject) {
  StepFaults f(subject);
  f.refused("an output row that is not there", kInvalid, [](StepData& d, auto&) { d.output_rows[4] = 5; });
  f.refused("output rows that fall", kInvalid, [](StepData& d, auto&) { d.output_rows = {0, 1, 2, 4, 3}; });
  f.refused("an output row twice", kInvalid, [](StepData& d, auto&) { d.output_rows[1] = 0; });
  const kvb_step step = f.world.data.view();
  uint64_t ticket = 0;
  const auto submit = [&](float* out, uint64_t floats, kv_error* e) {
    return f.world.api().queue_submit(f.world.queue.get(), f.world.program->get(), f.world.cache.get(), &step, out,
                                      floats, &ticket, e);
  };
  refuses("queue_submit with out one float too short", {KV_BUFFER_TOO_SMALL, KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return submit(f.world.out.data(), f.world.out.size() - 1, e); });
  refuses("queue_submit with out NULL", kInvalid, [&](kv_error* e) { return submit(nullptr, f.world.out.size(), e); });
  check(ticket == 0 && f.world.untouched(), "a refused submission wrote its results");

  StepData none = f.world.data;  // no outputs: nothing is written, and out may be NULL
  none.output_rows.clear();
  const kvb_step quiet = none.view();
  succeeds("queue_submit without outputs", [&](kv_error* e) {
    return f.world.api().queue_submit(f.world.queue.get(), f.world.program->get(), f.world.cache.get(), &quiet, nullptr,
                                      0, &ticket, e);
  });
  f.world.wait(ticket);
  f.finish();
}

// Pages that no token can reach may be absent.
void unreachable_pages(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const uint32_t tokens = world.spec.groups[0].page_tokens;
  if (tokens > 8) throw Unsupported("pages of " + std::to_string(tokens) + " tokens hide what is to be seen");
  const uint32_t before = 4 + 2 * tokens;  // the window of the second group is 5
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < SmallWorld::kPages; ++i) all.push_back(i);
  const auto last_row = [&](bool hide) {
    TestSequence sequence{0, {all, all}};
    for (uint32_t i = 0; i < before; ++i) {
      StepData step;
      step.append(sequence, {static_cast<int32_t>(i % 11)});
      testing::run_step(world.device, world.queue.get(), *world.program, world.cache.get(), step);
    }
    if (hide) sequence.pages[1][0] = KVB_NONE;
    StepData step;
    step.append(sequence, {3});
    return testing::run_step(world.device, world.queue.get(), *world.program, world.cache.get(), step);
  };
  if (before >= SmallWorld::kPages * tokens) throw Unsupported("the pages are too short");
  same_bits(last_row(true), last_row(false), "a step without a page that it cannot reach");
}

void random_steps(Subject& subject) {
  StepFaults f(subject);
  std::mt19937 engine(4);
  const auto random = [&](uint32_t below) { return static_cast<uint32_t>(engine() % below); };
  uint32_t accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    StepData broken = f.world.data;
    kvb_step step = broken.view();
    for (uint32_t changes = 1 + random(2); changes > 0; --changes) {
      const uint32_t word = random(3) == 0 ? KVB_NONE - random(3) : random(9);
      switch (random(6)) {
        case 0: broken.tokens[random(5)] = static_cast<int32_t>(word); break;
        case 1: broken.positions[random(5)] = word; break;
        case 2: broken.sequence_of[random(5)] = word; break;
        case 3: broken.lengths[random(2)] = word; break;
        case 4: broken.output_rows[random(5)] = word; break;
        default: page(step, random(2), random(4)) = word; break;
      }
    }
    kv_error error{};
    uint64_t ticket = 0;
    if (f.world.submit(step, &ticket, &error) == KV_OK) {
      ++accepted;
      f.world.wait(ticket);
      f.world.out.assign(f.world.out.size(), SmallWorld::kUntouched);
      continue;
    }
    check(error.message[0] != '\0', "a random step was refused without a sentence");
    check(ticket == 0 && f.world.untouched(), "a refused step wrote its results");
  }
  check(accepted > 0 && accepted < 4000, std::to_string(accepted) + " of 4000 random steps were accepted");
  f.finish();
}

}  // namespace

void add_step_faults(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("faults/") + name, obligations, Profile::kCore, run});
  };
  add("step_counts", "KVB-7 KVB-11", counts);
  add("step_pointers", "KVB-7 KVB-8 KVB-11", pointers);
  add("step_tokens", "KVB-7 KVB-11", tokens);
  add("step_sequences", "KVB-7 KVB-11", sequences);
  add("step_pages", "KVB-7 KVB-8 KVB-11", pages);
  add("step_outputs", "KVB-7 KVB-11 KVB-22", outputs);
  add("unreachable_pages", "KVB-11", unreachable_pages);
  add("random_steps", "KVB-7 KVB-11 KVB-22", random_steps);
}

}  // namespace kvasir::conformance
