// SPDX-License-Identifier: MIT
//
// The group "groups": each canonical group of ops.h marked, against the same ops unmarked, with every choice of its
// optional members.
#include "suite/op_case.h"
#include "suite/tiny_model.h"

namespace kvasir::conformance {
namespace {

struct Group {
  const char* name;
  uint16_t id;
  std::vector<uint32_t> optional;
};

const Group kGroups[] = {
    {"NORM_QKV", KVB_GROUP_NORM_QKV, {kNormQkv}},
    {"ROPE_STORE", KVB_GROUP_ROPE_STORE, {kNormQ, kNormK, kRopeQ, kRopeK}},
    {"ATTENTION", KVB_GROUP_ATTENTION, {kLinearO, kAddO}},
    {"NORM_FFN", KVB_GROUP_NORM_FFN, {kNormFfn}},
    {"DOWN", KVB_GROUP_DOWN, {kAddDown}},
    {"LOGITS", KVB_GROUP_LOGITS, {kNormOut, kLinearOut}},
};

// A prompt, single tokens, and a batch; then the rows that the layers stored.
std::vector<std::vector<float>> session(TinyWorld& world) {
  Random random(11);
  std::vector<std::vector<float>> results;
  results.push_back(world.run({{0, random.tokens(19, TinyShape::kVocab)}}));
  results.push_back(world.run({{0, {3}}}));
  results.push_back(world.run({{0, {5}}, {1, random.tokens(6, TinyShape::kVocab)}, {2, {1}}}, false));
  const uint32_t width = TinyShape::kKvHeads * TinyShape::kHeadDim, page = world.sequences[0].pages[0][0];
  for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
    results.push_back(testing::read_cache(world.device, world.queue.get(), world.cache.get(), 1, what, page, 0,
                                          std::min(world.shape.page_tokens, 16u), width));
  }
  return results;
}

void run_group(Subject& subject, TinyShape shape, bool block, uint32_t marked) {
  {
    testing::TestHost host;
    const testing::TestDevice device = subject.open(host);
    shape.cache_type = plain_cache_type(device);
    if (block) shape.weight_type = block_type_of(device);
    shape.page_tokens = page_tokens_near(device, 16);
  }
  if (shape.weight_type == KV_TYPE_DEFAULT) throw Unsupported("the device takes no type in blocks of 32");
  TinyShape with = shape, without = shape;
  with.marked = marked;
  without.marked = 0;
  TinyWorld fused(subject, with), plain(subject, without);
  const auto got = session(fused), want = session(plain);
  static constexpr const char* kWhat[] = {"the prompt", "a single token", "a batch", "the keys", "the values"};
  for (size_t i = 0; i < got.size(); ++i) {
    if (i < 3) check_same(fused, got[i], want[i], kWhat[i]);
    if (i >= 3 && fused.device.query(KVB_QUERY_DETERMINISTIC) == 1) check_same(fused, got[i], want[i], kWhat[i], true);
  }
}

}  // namespace

void add_groups_cases(std::vector<Case>& cases) {
  for (const char* const weights : {"F32", "F16", "block"}) {
    const bool block = std::string(weights) == "block";
    TinyShape shape;
    shape.weight_type = std::string(weights) == "F32" ? KV_TYPE_F32 : KV_TYPE_F16;
    const Profile profile = block ? Profile::kFull : Profile::kCore;
    for (const uint32_t mode : kModes) {
      shape.compute_mode = mode;
      const std::string tail = std::string("/") + weights + "/" + mode_label(mode);
      for (const Group& group : kGroups) {
        for (uint32_t choice = 0; choice < 1u << group.optional.size(); ++choice) {
          shape.members = kAllMembers;
          std::string absent;
          for (size_t i = 0; i < group.optional.size(); ++i) {
            if ((choice >> i & 1) != 0) continue;
            shape.members &= ~group.optional[i];
            absent += (absent.empty() ? ",without=" : "+") + std::to_string(i + 1);
          }
          const uint32_t marked = 1u << group.id;
          cases.push_back({std::string("groups/") + group.name + tail + absent, "KVB-18 KVB-19", profile,
                           [=](Subject& subject) { run_group(subject, shape, block, marked); }});
        }
      }
      shape.members = kAllMembers;
      cases.push_back({"groups/all" + tail, "KVB-18 KVB-19", profile,
                       [=](Subject& subject) { run_group(subject, shape, block, 0x7e); }});
    }
  }
}

}  // namespace kvasir::conformance
