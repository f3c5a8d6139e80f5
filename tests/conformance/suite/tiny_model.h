// SPDX-License-Identifier: MIT
//
// A transformer of a few layers with random weights, with or without each optional member of its canonical groups, and
// everything that is needed to run sequences through it. For the cases about whole programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/program.h"
#include "suite/expect.h"
#include "suite/random.h"
#include "suite/suite.h"

namespace kvasir::conformance {

// Optional members of groups.
enum Member : uint32_t {
  kNormQkv = 1,
  kNormQ = 2,
  kNormK = 4,
  kRopeQ = 8,
  kRopeK = 16,
  kLinearO = 32,
  kAddO = 64,
  kNormFfn = 128,
  kAddDown = 256,
  kNormOut = 512,
  kLinearOut = 1024,
  kAllMembers = 2047
};

struct TinyShape {
  static constexpr uint32_t kHeads = 4, kKvHeads = 2, kHeadDim = 16, kDim = 64, kFfn = 96, kVocab = 45;

  uint32_t weight_type = KV_TYPE_F32, compute_mode = KV_COMPUTE_EXACT;
  uint32_t cache_type = KV_TYPE_F16;
  uint32_t layers = 2;
  uint32_t window = 0;  // of the odd layers, in a cache group of their own
  uint32_t page_tokens = 16;
  uint32_t members = kAllMembers;
  uint32_t marked = 0x7e;  // bit g: the group g of ops.h is marked
  bool traced = false;
  uint64_t seed = 1;
  testing::Limits limits{96, 96, 4, 160};

  uint32_t output_width() const { return (members & kLinearOut) != 0 ? kVocab : kDim; }
};

testing::CacheSpec tiny_cache(const TinyShape& shape);
testing::ProgramBuilder tiny_program(const TinyShape& shape);

// What a sequence gets in one step: ids, or ~r for a row of `embeddings`.
struct Append {
  uint32_t sequence;
  std::vector<int32_t> tokens;
};

class TinyWorld {
 public:
  TinyWorld(Subject& subject, const TinyShape& shape_) : TinyWorld(subject, shape_, tiny_program(shape_)) {}
  TinyWorld(Subject& subject, const TinyShape& shape_, const testing::ProgramBuilder& program_);

  // Outputs of all tokens, or of the last of each sequence.
  std::vector<float> run(const std::vector<Append>& appends, bool all = true) {
    testing::StepData step = step_of(appends, all);
    return run(step);
  }
  std::vector<float> run(testing::StepData& step) {
    return testing::run_step(device, queue.get(), *program, cache.get(), step);
  }
  // The step, with the sequences advanced and pages given to them; `embeddings` rows of kDim.
  testing::StepData step_of(const std::vector<Append>& appends, bool all = true,
                            const std::vector<float>& embeddings = {});
  void poison_free_pages();
  void poison_page(uint32_t group, uint32_t page);
  // A program of its own from the same description.
  void recompile() { program = std::make_unique<testing::TestProgram>(device, builder, spec); }

  TinyShape shape;
  testing::TestHost host;
  testing::TestDevice device;
  testing::Owned<kvb_queue> queue;
  testing::CacheSpec spec;
  testing::ProgramBuilder builder;
  std::unique_ptr<testing::TestProgram> program;
  testing::Owned<kvb_cache> cache;
  std::vector<testing::TestSequence> sequences;
  std::vector<uint32_t> free_pages;  // the same numbers in every group
};

// The same steps on the reference.
class TinyReference {
 public:
  explicit TinyReference(const TinyWorld& world) : program_(world.builder), cache_(world.spec) {}
  Matrix run(const testing::StepData& step) { return program_.run(step, cache_); }

 private:
  ReferenceProgram program_;
  ReferenceCache cache_;
};

// A block type that LINEAR takes in rows of 32, or KV_TYPE_DEFAULT.
uint32_t block_type_of(const testing::TestDevice& device);
// Equal bits where the device promises them (or `exact`), else the bound for logits and the same largest elements.
void check_same(const TinyWorld& world, const std::vector<float>& got, const std::vector<float>& want,
                const std::string& what, bool exact = false);
// Within the bound for logits of the reference.
void check_logits(const TinyShape& shape, const std::vector<float>& got, const Matrix& want, const std::string& what);

}  // namespace kvasir::conformance
