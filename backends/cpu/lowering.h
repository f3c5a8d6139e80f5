// SPDX-License-Identifier: MIT
//
// From the flat list of ops to stages. Each file of ops/ lowers its opcode with what this class offers: where values
// are, memory of the program, and adding row ops and stages. Needs no weights: the same code answers program_memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache.h"
#include "device.h"
#include "ops/attention_plan.h"
#include "ops/rope_tables.h"
#include "sdk/cache_layout.h"
#include "sdk/walk.h"
#include "stage.h"

namespace kvasir::cpu {

class LinearStage;

// A single row that is multiplied as a matrix: the program packs its own copy.
struct OwnPack {
  uint32_t weight;  // index into the weights given to program_compile
  uint32_t width;
  uint64_t offset;
};

// The result: stages and the memory they were promised.
struct Lowered {
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<OwnPack> own_packs;
  std::vector<AttentionPlan> attention_plans;
  uint64_t bytes = 0;  // of the program's block
  uint64_t member_base = 0, member_stride = 0;
};

class Lowering {
 public:
  Lowering(const Device& device, const sdk::Program& program, const sdk::CacheLayout& cache,
           const std::vector<GroupLayout>& groups);

  // KV_OUT_OF_MEMORY when the sizes pass 64 bits; `op` gets the op that cannot be run, if one is at fault.
  kv_status run(Lowered* out, uint32_t* bad_op, kv_error* error);

  // ---- for ops/ ----
  const Device& device() const { return device_; }
  const sdk::Program& program() const { return program_; }
  const sdk::CacheLayout& cache() const { return cache_; }
  const GroupLayout& group(uint32_t layer) const { return groups_[cache_.layer_group[layer]]; }
  bool fast() const { return program_.desc.compute_mode == KV_COMPUTE_FAST; }

  Tensor tensor(uint32_t value) const;
  uint32_t weight_index(uint32_t value) const { return static_cast<uint32_t>(program_.values[value].place); }

  // Bytes of the program's block, aligned to a cache line. The offset counts from the block's start.
  uint64_t take(uint64_t count, uint64_t bytes_each);
  // Each member's scratch holds at least this much.
  void need_member_scratch(uint64_t floats);
  uint64_t own_pack(uint32_t value);
  // Traced programs: two rows of max_length scores.
  uint64_t trace_offset() const { return trace_offset_; }
  RopeTables& ropes() { return *ropes_; }
  uint32_t add_attention_plan(const AttentionPlan& plan);

  // `reads` and `writes` are all activations the op touches; decides whether it can join the row stage before it.
  void add_row_op(std::unique_ptr<RowOp> op, bool output_rows, std::vector<Tensor> reads, std::vector<Tensor> writes);
  void add_stage(std::unique_ptr<Stage> stage);
  // The stage added last, when it is one of products.
  LinearStage* last_linear() const { return last_linear_; }
  void add_linear_stage(std::unique_ptr<LinearStage> stage);
  // Whether the ADD became the last step of the products just before it.
  bool add_into_last_linear(const kvb_op& add);

  // Where the rows of `value` are as operand rows of `type`; adds the op that prepares them unless they still are.
  uint64_t prepared(uint32_t value, OperandType type, size_t* row_bytes);

 private:
  struct Prepared {
    uint64_t offset = 0;
    uint32_t value = KVB_NONE;  // what it holds now
  };

  kv_status lower_op(uint32_t index, kv_error* error);
  void finish_op(uint32_t index);
  void forget_overwritten(const Tensor& written);
  void plan_operands();
  bool joins_row_stage(bool output_rows, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) const;

  const Device& device_;
  const sdk::Program& program_;
  const sdk::CacheLayout& cache_;
  const std::vector<GroupLayout>& groups_;
  Lowered out_;
  bool overflow_ = false;
  uint64_t member_floats_ = 0;
  uint64_t trace_offset_ = 0;
  RopeTables* ropes_ = nullptr;    // owned by the first stage
  RowStage* open_rows_ = nullptr;  // the last stage, while row ops may join it
  std::vector<Tensor> open_reads_, open_writes_;
  LinearStage* last_linear_ = nullptr;
  Prepared int8_, bf16_;
};

// One for each opcode the backend runs, in ops/. They add to the lowering what the op needs, and refuse, with a
// sentence, the features they lack.
using LowerFn = kv_status (*)(Lowering& lowering, const kvb_op& op, uint32_t index, kv_error* error);
kv_status lower_embed(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_rms_norm(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_linear(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_rope(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_kv_store(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_attention(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_glu(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_add(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_select_rows(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_activation(Lowering&, const kvb_op&, uint32_t, kv_error*);
kv_status lower_scale(Lowering&, const kvb_op&, uint32_t, kv_error*);

}  // namespace kvasir::cpu
