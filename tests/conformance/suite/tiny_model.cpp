// SPDX-License-Identifier: MIT
//
// Building and running the tiny transformer.
#include "suite/tiny_model.h"

#include <cmath>

#include "reference/limits.h"
#include "reference/quantize.h"
#include "suite/op_case.h"
#include "support/bounds.h"

namespace kvasir::conformance {
namespace {

using testing::bits;

class Builder {
 public:
  explicit Builder(const TinyShape& shape) : shape_(shape), random_(shape.seed), b_(shape.limits) {
    b_.compute_mode = shape.compute_mode;
    b_.flags = shape.traced ? uint32_t{KVB_PROGRAM_TRACE} : 0;
  }

  testing::ProgramBuilder build() {
    rope_ = b_.rope(KVB_ROPE_HALVES, 2, 1, {1.0, 0.31, 0.09, 0.03, 0.01, 0.003});
    x_ = b_.tokens(TinyShape::kDim);
    b_.op(KVB_OP_EMBED, {matrix(TinyShape::kVocab, TinyShape::kDim)}, {x_}, {bits(8.0f)});
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      layer_ = static_cast<uint16_t>(layer);
      add_attention();
      add_ffn();
    }
    add_output();
    return std::move(b_);
  }

 private:
  bool has(uint32_t member) const { return (shape_.members & member) != 0; }
  void begin(uint16_t group) {
    group_ = (shape_.marked >> group & 1) != 0 ? group : uint16_t{0};
    first_ = true;
  }
  void op(uint16_t code, std::initializer_list<uint32_t> in, std::initializer_list<uint32_t> out,
          std::initializer_list<uint32_t> param = {}) {
    kvb_op& op = b_.op(code, in, out, param);
    op.layer = layer_;
    op.group = group_;
    op.flags = first_ && group_ != 0 ? uint16_t{KVB_OP_FLAG_GROUP_BEGIN} : uint16_t{0};
    first_ = false;
  }
  uint32_t matrix(uint32_t rows, uint32_t width) { return b_.weight(random_.weight(shape_.weight_type, rows, width)); }
  uint32_t norm(uint32_t width) { return b_.vector(random_.normals(width, 0.1f, 1)); }
  uint32_t linear(uint32_t x, uint32_t rows, uint32_t width, bool bias = false) {
    const uint32_t y = b_.tokens(rows), w = matrix(rows, width);
    op(KVB_OP_LINEAR, {x, w, bias ? b_.vector(random_.normals(rows, 0.1f)) : KVB_NONE}, {y});
    return y;
  }
  uint32_t normed(uint32_t member) {
    const uint32_t weight = norm(TinyShape::kDim);
    if (!has(member)) return x_;
    const uint32_t h = b_.tokens(TinyShape::kDim);
    op(KVB_OP_RMS_NORM, {x_, weight}, {h}, {bits(1e-5f), 0});
    return h;
  }

  void add_attention() {
    constexpr uint32_t kQ = TinyShape::kHeads * TinyShape::kHeadDim, kKv = TinyShape::kKvHeads * TinyShape::kHeadDim;
    begin(KVB_GROUP_NORM_QKV);
    const uint32_t h = normed(kNormQkv);
    const uint32_t q = linear(h, kQ, TinyShape::kDim, true), k = linear(h, kKv, TinyShape::kDim, true);
    const uint32_t v = linear(h, kKv, TinyShape::kDim);
    begin(KVB_GROUP_ROPE_STORE);
    const uint32_t q_norm = norm(TinyShape::kHeadDim), k_norm = norm(TinyShape::kHeadDim);
    if (has(kNormQ)) op(KVB_OP_RMS_NORM, {q, q_norm}, {q}, {bits(1e-5f), TinyShape::kHeadDim});
    if (has(kNormK)) op(KVB_OP_RMS_NORM, {k, k_norm}, {k}, {bits(1e-5f), TinyShape::kHeadDim});
    if (has(kRopeQ)) op(KVB_OP_ROPE, {q}, {q}, {TinyShape::kHeads, TinyShape::kHeadDim, rope_});
    if (has(kRopeK)) op(KVB_OP_ROPE, {k}, {k}, {TinyShape::kKvHeads, TinyShape::kHeadDim, rope_});
    op(KVB_OP_KV_STORE, {k, v}, {}, {layer_});
    begin(KVB_GROUP_ATTENTION);
    uint32_t y = b_.tokens(kQ);
    op(KVB_OP_ATTENTION, {q}, {y}, {layer_, TinyShape::kHeads, bits(0.25f), 0});
    if (has(kLinearO)) y = linear(y, TinyShape::kDim, kQ);
    if (has(kAddO)) op(KVB_OP_ADD, {x_, y}, {x_});
    if (!has(kAddO)) x_ = y;
  }

  void add_ffn() {
    begin(KVB_GROUP_NORM_FFN);
    const uint32_t h = normed(kNormFfn);
    const uint32_t gate = linear(h, TinyShape::kFfn, TinyShape::kDim), up = linear(h, TinyShape::kFfn, TinyShape::kDim);
    op(KVB_OP_GLU, {gate, up}, {gate}, {KVB_ACT_SILU});
    begin(KVB_GROUP_DOWN);
    const uint32_t y = linear(gate, TinyShape::kDim, TinyShape::kFfn);
    if (has(kAddDown)) op(KVB_OP_ADD, {y, x_}, {x_});
    if (!has(kAddDown)) x_ = y;
  }

  void add_output() {
    begin(KVB_GROUP_LOGITS);
    layer_ = 0xffff;
    const uint32_t weight = norm(TinyShape::kDim), head = matrix(TinyShape::kVocab, TinyShape::kDim);
    const uint32_t out = b_.output(shape_.output_width()), picked = b_.selected(TinyShape::kDim);
    op(KVB_OP_SELECT_ROWS, {x_}, {has(kNormOut) || has(kLinearOut) ? picked : out});
    if (has(kNormOut)) op(KVB_OP_RMS_NORM, {picked, weight}, {has(kLinearOut) ? picked : out}, {bits(1e-5f), 0});
    if (has(kLinearOut)) op(KVB_OP_LINEAR, {picked, head}, {out});
  }

  TinyShape shape_;
  Random random_;
  testing::ProgramBuilder b_;
  uint32_t rope_ = 0, x_ = 0;
  uint16_t layer_ = 0xffff, group_ = 0;
  bool first_ = false;
};

uint32_t page_count(const TinyShape& shape) {
  return shape.limits.sequences * ((shape.limits.length + shape.page_tokens - 1) / shape.page_tokens) + 2;
}

size_t largest_of(const float* row, uint32_t width) { return size_t(std::max_element(row, row + width) - row); }

}  // namespace

testing::CacheSpec tiny_cache(const TinyShape& shape) {
  const kvb_cache_group full{shape.cache_type,    shape.cache_type,
                             TinyShape::kKvHeads, TinyShape::kHeadDim,
                             TinyShape::kHeadDim, 0,
                             shape.page_tokens,   0};
  if (shape.window == 0) return testing::one_group(shape.layers, full);
  kvb_cache_group windowed = full;
  windowed.window = shape.window;
  testing::CacheSpec spec{{full, windowed}, {}};
  for (uint32_t layer = 0; layer < shape.layers; ++layer) spec.layer_group.push_back(layer % 2);
  return spec;
}

testing::ProgramBuilder tiny_program(const TinyShape& shape) { return Builder(shape).build(); }

TinyWorld::TinyWorld(Subject& subject, const TinyShape& shape_, const testing::ProgramBuilder& program_)
    : shape(shape_), device(subject.open(host)), queue(device.queue()), spec(tiny_cache(shape)), builder(program_) {
  require_supported(device, builder, spec, KVB_NONE);
  recompile();
  const std::vector<uint32_t> counts(spec.groups.size(), page_count(shape));
  cache = testing::make_cache(device, queue.get(), spec, counts);
  sequences.assign(shape.limits.sequences, {0, std::vector<std::vector<uint32_t>>(spec.groups.size())});
  Random random(shape.seed);
  for (uint32_t page = 0; page < counts[0]; ++page) {
    free_pages.insert(free_pages.begin() + random.below(page + 1), page);
  }
}

testing::StepData TinyWorld::step_of(const std::vector<Append>& appends, bool all,
                                     const std::vector<float>& embeddings) {
  testing::StepData step;
  step.embeddings = embeddings;
  step.embedding_count = static_cast<uint32_t>(embeddings.size() / TinyShape::kDim);
  for (const Append& append : appends) {
    testing::TestSequence& sequence = sequences[append.sequence];
    while (sequence.pages[0].size() * shape.page_tokens < sequence.length + append.tokens.size()) {
      for (auto& pages : sequence.pages) pages.push_back(free_pages.back());
      free_pages.pop_back();
    }
    step.append(sequence, append.tokens, all);
  }
  return step;
}

void TinyWorld::poison_page(uint32_t group, uint32_t page) {
  succeeds("cache_poison_page", [&](kv_error* error) {
    return device.api->cache_poison_page(queue.get(), cache.get(), group, page, error);
  });
}

void TinyWorld::poison_free_pages() {
  for (uint32_t group = 0; group < spec.groups.size(); ++group) {
    for (const uint32_t page : free_pages) poison_page(group, page);
  }
}

uint32_t block_type_of(const testing::TestDevice& device) {
  for (const uint32_t type : types_in(device.query(KVB_QUERY_WEIGHT_TYPES))) {
    if (block_elements(type) == 32) return type;
  }
  return KV_TYPE_DEFAULT;
}

void check_same(const TinyWorld& world, const std::vector<float>& got, const std::vector<float>& want,
                const std::string& what, bool exact) {
  check(got.size() == want.size(),
        what + ": " + std::to_string(got.size()) + " values instead of " + std::to_string(want.size()));
  const uint32_t width = world.shape.output_width();
  if (exact || world.device.query(KVB_QUERY_DETERMINISTIC) == 1) {
    for (size_t i = 0; i < got.size(); ++i) {
      check(std::memcmp(&got[i], &want[i], sizeof(float)) == 0,
            what + ": element " + std::to_string(i % width) + " of row " + std::to_string(i / width) + " is " +
                std::to_string(got[i]) + ", it should have the bits of " + std::to_string(want[i]));
    }
    return;
  }
  const double bound = logits_bound(world.shape.compute_mode, world.shape.cache_type);
  const double deviation = test::compare(got, want).relative_rms;
  check(deviation <= bound,
        what + ": the deviation is " + std::to_string(deviation) + ", the bound " + std::to_string(bound));
  for (size_t at = 0; at < got.size(); at += width) {
    check(largest_of(&got[at], width) == largest_of(&want[at], width),
          what + ": the largest element of row " + std::to_string(at / width) + " is another one");
  }
}

void check_logits(const TinyShape& shape, const std::vector<float>& got, const Matrix& want, const std::string& what) {
  const std::vector<float> rounded(want.data.begin(), want.data.end());
  check(got.size() == rounded.size(), what + " has another size than the reference's");
  const double bound = logits_bound(shape.compute_mode, shape.cache_type);
  const double deviation = test::compare(got, rounded).relative_rms;
  check(deviation <= bound, what + ": the deviation from the reference is " + std::to_string(deviation) +
                                ", the bound " + std::to_string(bound));
}

}  // namespace kvasir::conformance
