// SPDX-License-Identifier: MIT
//
// One op of a program against ops.h: operands of the right kind and shape, parameters in range. One function per
// opcode, in the order of the specification. Values themselves have been checked before (verify_program.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "sdk/cache_layout.h"
#include "sdk/walk.h"

namespace kvasir::sdk {

// What is wrong with rotary parameters for heads of `head_dim` elements; NULL when nothing is. Also for
// cache_move_rows, whose parameters come from outside a program.
inline const char* rope_fault(const kvb_rope& rope, uint32_t head_dim) {
  if (rope.pairing != KVB_ROPE_ADJACENT && rope.pairing != KVB_ROPE_HALVES) return "the pairing is unknown";
  if (uint64_t{rope.first} + 2 * uint64_t{rope.pairs} > head_dim) return "the rotated part passes the head's end";
  if (!std::isfinite(rope.magnitude)) return "the magnitude is not finite";
  const double* frequency = rope_frequencies(rope);
  for (uint32_t i = 0; i < rope.pairs; ++i) {
    if (!std::isfinite(frequency[i])) return "a frequency is not finite";
  }
  return nullptr;
}

class OpVerifier {
 public:
  OpVerifier(const Program& program, const CacheLayout& cache, uint32_t index, kv_error* error)
      : program_(program), cache_(cache), op_(program.ops[index]), index_(index), error_(error) {}

  // KV_UNSUPPORTED for an unknown code, KV_INVALID_ARGUMENT for a malformed op.
  kv_status run() {
    const OpFacts* facts = op_facts(op_.code);
    KV_REQUIRE(facts != nullptr, error_, KV_UNSUPPORTED, "op %u has the unknown code %u", index_, op_.code);
    name_ = facts->name;
    KV_TRY(check_form(*facts));
    switch (op_.code) {
      case KVB_OP_EMBED: return embed();
      case KVB_OP_RMS_NORM: return rms_norm();
      case KVB_OP_LINEAR: return linear();
      case KVB_OP_ROPE: return rope();
      case KVB_OP_KV_STORE: return kv_store();
      case KVB_OP_ATTENTION: return attention();
      case KVB_OP_GLU: return glu();
      case KVB_OP_ADD: return add();
      case KVB_OP_SELECT_ROWS: return select_rows();
      case KVB_OP_LAYER_NORM: return layer_norm();
      case KVB_OP_ACTIVATION: return activation();
      case KVB_OP_SCALE: return scale();
      case KVB_OP_SOFTCAP: return softcap();
      case KVB_OP_COPY_HEADS: return copy_heads();
      case KVB_OP_HEAD_LINEAR: return head_linear();
      case KVB_OP_MOE_ROUTE: return moe_route();
      case KVB_OP_MOE_LINEAR: return moe_linear();
      case KVB_OP_MOE_SUM: return moe_sum();
      case KVB_OP_TOP_K: return top_k();
      default: return fail(error_, KV_UNSUPPORTED, "op %u has the unknown code %u", index_, op_.code);
    }
  }

 private:
  // ---- what all ops share

  kv_status bad(const char* what) const {
    return fail(error_, KV_INVALID_ARGUMENT, "op %u (%s, layer %u): %s", index_, name_, op_.layer, what);
  }
  kv_status require(bool condition, const char* what) const { return condition ? KV_OK : bad(what); }

  kv_status check_form(const OpFacts& facts) const {
    KV_REQUIRE((op_.flags & ~KVB_OP_FLAG_GROUP_BEGIN) == 0, error_, KV_UNSUPPORTED, "op %u (%s) has unknown flags 0x%x",
               index_, name_, op_.flags);
    KV_REQUIRE(op_.group <= KVB_GROUP_LOGITS, error_, KV_UNSUPPORTED, "op %u (%s) is in the unknown group %u", index_,
               name_, op_.group);
    for (uint32_t i = 0; i < 6; ++i) {
      const bool given = op_.in[i] != KVB_NONE;
      KV_REQUIRE(!given || (facts.inputs >> i & 1) != 0, error_, KV_UNSUPPORTED, "op %u (%s) has no input %u", index_,
                 name_, i);
      KV_REQUIRE(given || (facts.required >> i & 1) == 0, error_, KV_INVALID_ARGUMENT, "op %u (%s) lacks input %u",
                 index_, name_, i);
      KV_REQUIRE(!given || op_.in[i] < program_.values.size(), error_, KV_INVALID_ARGUMENT,
                 "input %u of op %u (%s) is value %u of %zu", i, index_, name_, op_.in[i], program_.values.size());
      KV_REQUIRE((facts.params >> i & 1) != 0 || op_.param[i] == 0, error_, KV_UNSUPPORTED,
                 "op %u (%s) sets parameter %u, which it does not have", index_, name_, i);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const bool given = op_.out[i] != KVB_NONE;
      KV_REQUIRE(!given || i < facts.outputs, error_, KV_UNSUPPORTED, "op %u (%s) has no output %u", index_, name_, i);
      KV_REQUIRE(given || i >= facts.outputs, error_, KV_INVALID_ARGUMENT, "op %u (%s) lacks output %u", index_, name_,
                 i);
      KV_REQUIRE(!given || op_.out[i] < program_.values.size(), error_, KV_INVALID_ARGUMENT,
                 "output %u of op %u (%s) is value %u of %zu", i, index_, name_, op_.out[i], program_.values.size());
      KV_REQUIRE(!given || out(i).kind != KVB_VALUE_WEIGHT, error_, KV_INVALID_ARGUMENT,
                 "output %u of op %u (%s) is a weight", i, index_, name_);
    }
    return KV_OK;
  }

  bool has(uint32_t i) const { return op_.in[i] != KVB_NONE; }
  const kvb_value& in(uint32_t i) const { return program_.values[op_.in[i]]; }
  const kvb_value& out(uint32_t i = 0) const { return program_.values[op_.out[i]]; }
  uint32_t param(uint32_t i) const { return op_.param[i]; }

  static bool activation_value(const kvb_value& value) {
    return value.kind != KVB_VALUE_WEIGHT && value.type == KV_TYPE_F32;
  }
  static bool ids_value(const kvb_value& value) {
    return value.kind == KVB_VALUE_SCRATCH && value.type == KVB_TYPE_I32;
  }
  static bool vector(const kvb_value& value, uint64_t width) {
    return value.kind == KVB_VALUE_WEIGHT && value.type == KV_TYPE_F32 && value.rows == 1 && value.depth == 1 &&
           value.width == width;
  }
  static bool matrix(const kvb_value& value) { return value.kind == KVB_VALUE_WEIGHT && value.depth == 1; }
  static bool same_rows(const kvb_value& a, const kvb_value& b) { return a.rows == b.rows && a.depth == b.depth; }
  static bool same_shape(const kvb_value& a, const kvb_value& b) { return same_rows(a, b) && a.width == b.width; }
  static bool token_rows(const kvb_value& value) { return value.rows == KVB_ROWS_TOKENS && value.depth == 1; }
  bool finite(uint32_t i) const { return std::isfinite(float_param(op_, i)); }
  bool layer_known() const { return param(0) < cache_.layers(); }

  // in0 and out0 are activations of one shape.
  kv_status elementwise() const {
    KV_TRY(require(activation_value(in(0)) && activation_value(out()), "input and output are not f32 activations"));
    return require(same_shape(in(0), out()), "input and output differ in shape");
  }
  kv_status optional_vector(uint32_t i, uint64_t width, const char* what) const {
    return require(!has(i) || vector(in(i), width), what);
  }
  kv_status check_activation() const {
    return require(param(0) >= KVB_ACT_SILU && param(0) <= KVB_ACT_RELU, "the activation is unknown");
  }

  // ---- one function per opcode

  kv_status embed() const {
    KV_TRY(require(activation_value(out()) && token_rows(out()), "the output is not [T, n]"));
    KV_TRY(require(!has(0) || (matrix(in(0)) && in(0).width == out().width), "the table is not [vocab, n]"));
    KV_TRY(
        require(!has(1) || (matrix(in(1)) && in(1).width == out().width), "the position table is not [positions, n]"));
    return require(finite(0), "the scale is not finite");
  }

  kv_status rms_norm() const {
    KV_TRY(elementwise());
    const uint32_t width = param(1) == 0 ? in(0).width : param(1);
    KV_TRY(require(in(0).width % width == 0, "the group width does not divide the row"));
    KV_TRY(optional_vector(1, width, "the weight is not an f32 vector as wide as the normalised group"));
    return require(finite(0) && float_param(op_, 0) >= 0, "eps is negative or not finite");
  }

  kv_status linear() const {
    KV_TRY(require(activation_value(in(0)) && activation_value(out()), "input and output are not f32 activations"));
    KV_TRY(require(same_rows(in(0), out()), "input and output differ in rows"));
    KV_TRY(require(matrix(in(1)) && in(1).width == in(0).width, "the weight is not [out, in] with the input's width"));
    KV_TRY(require(uint64_t{param(0)} + out().width <= in(1).rows, "the view passes the weight's last row"));
    return optional_vector(2, in(1).rows, "the bias is not an f32 vector with an element per weight row");
  }

  kv_status rope() const {
    KV_TRY(elementwise());
    KV_TRY(require(token_rows(out()), "the rows are not the tokens"));
    KV_TRY(require(uint64_t{param(0)} * param(1) == out().width && param(1) > 0, "heads * head_dim is not the width"));
    const uint64_t offset = param(2);
    KV_TRY(require(offset % 8 == 0 && range_fits(offset, sizeof(kvb_rope), program_.desc.blob_bytes),
                   "the rotary parameters are outside the blob or not aligned"));
    const kvb_rope& rope = program_.rope(op_);
    KV_TRY(
        require(range_fits(offset + sizeof(kvb_rope), uint64_t{rope.pairs} * sizeof(double), program_.desc.blob_bytes),
                "the rotary frequencies are outside the blob"));
    const char* fault = rope_fault(rope, param(1));
    return fault == nullptr ? KV_OK : bad(fault);
  }

  kv_status kv_store() const {
    KV_TRY(require(layer_known(), "the cache has no such layer"));
    const kvb_cache_group& group = cache_.group_of(param(0));
    KV_TRY(
        require(activation_value(in(0)) && token_rows(in(0)) && in(0).width == uint64_t{group.kv_heads} * group.k_dim,
                "the keys are not [T, kv_heads * k_dim]"));
    if (CacheLayout::latent(group)) return require(!has(1), "a latent cache stores no values of their own");
    return require(
        has(1) && activation_value(in(1)) && token_rows(in(1)) && in(1).width == uint64_t{group.kv_heads} * group.v_dim,
        "the values are not [T, kv_heads * v_dim]");
  }

  kv_status attention() const {
    KV_TRY(require(layer_known(), "the cache has no such layer"));
    const kvb_cache_group& group = cache_.group_of(param(0));
    const uint64_t heads = param(1);
    KV_TRY(require(heads > 0 && heads % group.kv_heads == 0, "the heads are no multiple of the layer's kv heads"));
    KV_TRY(require(activation_value(in(0)) && token_rows(in(0)) && in(0).width == heads * group.k_dim,
                   "the queries are not [T, heads * k_dim]"));
    KV_TRY(require(activation_value(out()) && token_rows(out()) && out().width == heads * group.v_dim,
                   "the output is not [T, heads * v_dim]"));
    KV_TRY(optional_vector(1, heads, "the sinks are not an f32 vector with an element per head"));
    KV_TRY(optional_vector(2, heads, "the slopes are not an f32 vector with an element per head"));
    return require(finite(2) && finite(3) && float_param(op_, 3) >= 0, "scale or soft-cap is negative or not finite");
  }

  kv_status glu() const {
    KV_TRY(require(activation_value(in(0)) && activation_value(out()) && same_rows(in(0), out()),
                   "gate and output are not f32 activations with the same rows"));
    const uint64_t gate_width = has(1) ? uint64_t{out().width} : 2 * uint64_t{out().width};
    KV_TRY(require(in(0).width == gate_width, "the gate's width does not fit the output's"));
    KV_TRY(require(!has(1) || (activation_value(in(1)) && same_shape(in(1), out())), "up and output differ in shape"));
    return check_activation();
  }

  kv_status add() const {
    KV_TRY(elementwise());
    return require(activation_value(in(1)) && same_shape(in(1), out()), "the two inputs differ in shape");
  }

  kv_status select_rows() const {
    KV_TRY(require(activation_value(in(0)) && token_rows(in(0)), "the input is not [T, n]"));
    return require(
        activation_value(out()) && out().rows == KVB_ROWS_OUTPUTS && out().depth == 1 && out().width == in(0).width,
        "the output is not [O, n]");
  }

  kv_status layer_norm() const {
    KV_TRY(elementwise());
    KV_TRY(optional_vector(1, in(0).width, "the weight is not an f32 vector as wide as the row"));
    KV_TRY(optional_vector(2, in(0).width, "the bias is not an f32 vector as wide as the row"));
    return require(finite(0) && float_param(op_, 0) >= 0, "eps is negative or not finite");
  }

  kv_status activation() const {
    KV_TRY(elementwise());
    return check_activation();
  }

  kv_status scale() const {
    KV_TRY(elementwise());
    return require(finite(0), "the factor is not finite");
  }

  kv_status softcap() const {
    KV_TRY(elementwise());
    return require(finite(0) && float_param(op_, 0) > 0, "the cap is not a positive number");
  }

  kv_status copy_heads() const {
    const uint64_t heads = param(0);
    const uint64_t sources = param(4);
    KV_TRY(require(activation_value(in(0)) && activation_value(out()) && same_rows(in(0), out()),
                   "input and output are not f32 activations with the same rows"));
    KV_TRY(require(!has(1) || (activation_value(in(1)) && same_shape(in(1), out())),
                   "the previous content differs from the output in shape"));
    KV_TRY(require(heads > 0 && (sources == heads || sources == 1), "the source heads are neither 1 nor all"));
    KV_TRY(require(in(0).width % sources == 0 && out().width % heads == 0, "the heads do not divide the rows"));
    return require(
        uint64_t{param(1)} + param(3) <= in(0).width / sources && uint64_t{param(2)} + param(3) <= out().width / heads,
        "the copied part passes the head's end");
  }

  kv_status head_linear() const {
    const uint64_t heads = param(0);
    KV_TRY(require(activation_value(in(0)) && activation_value(out()) && same_rows(in(0), out()),
                   "input and output are not f32 activations with the same rows"));
    KV_TRY(require(in(1).kind == KVB_VALUE_WEIGHT && heads > 0 && in(1).depth == heads,
                   "the weight is not a matrix per head"));
    KV_TRY(require(in(0).width == heads * in(1).width, "the input is not [R, heads * in]"));
    return require(out().width == heads * in(1).rows, "the output is not [R, heads * out]");
  }

  kv_status moe_route() const {
    const uint32_t experts = param(0);
    const uint32_t used = param(1);
    KV_TRY(require(activation_value(in(0)) && in(0).depth == 1 && in(0).width == experts,
                   "the scores are not [T, experts]"));
    KV_TRY(require(used > 0 && used <= experts, "the number of experts used is not in 1 .. experts"));
    KV_TRY(optional_vector(1, experts, "the bias is not an f32 vector with an element per expert"));
    KV_TRY(require(activation_value(out()) && same_rows(in(0), out()) && out().width == used,
                   "the weights are not [T, used]"));
    KV_TRY(require(ids_value(out(1)) && same_rows(in(0), out(1)) && out(1).width == used,
                   "the ids are not i32 [T, used]"));
    KV_TRY(
        require(param(2) >= KVB_ROUTE_SOFTMAX && param(2) <= KVB_ROUTE_SIGMOID_NORMALIZED, "the scoring is unknown"));
    KV_TRY(require(finite(3), "the factor is not finite"));
    const uint32_t groups = param(4) & 0xffffu;
    const uint32_t groups_used = param(4) >> 16;
    if (groups <= 1) return require(groups_used <= groups, "more expert groups are used than there are");
    KV_TRY(require(experts % groups == 0, "the expert groups do not divide the experts"));
    return require(groups_used > 0 && groups_used <= groups && uint64_t{experts / groups} * groups_used >= used,
                   "the expert groups used cannot hold the experts used");
  }

  kv_status moe_linear() const {
    const kvb_value& x = in(0);
    const kvb_value& weight = in(1);
    const kvb_value& ids = in(3);
    KV_TRY(require(ids_value(ids) && ids.depth == 1, "the ids are not i32 [T, used]"));
    KV_TRY(require(activation_value(x) && x.rows == ids.rows && (x.depth == 1 || x.depth == ids.width),
                   "the input is neither [T, in] nor [T * used, in]"));
    KV_TRY(require(weight.kind == KVB_VALUE_WEIGHT && weight.width == x.width, "the weight is not [experts][out, in]"));
    KV_TRY(require(
        activation_value(out()) && out().rows == ids.rows && out().depth == ids.width && out().width == weight.rows,
        "the output is not [T * used, out]"));
    KV_TRY(require(!has(2) || (in(2).kind == KVB_VALUE_WEIGHT && in(2).type == KV_TYPE_F32 &&
                               in(2).width == weight.rows && uint64_t{in(2).depth} * in(2).rows == weight.depth),
                   "the bias is not f32 [experts][out]"));
    return require(routed_among(op_.in[3], weight.depth),
                   "the ids are not those of a route among the weight's experts");
  }

  // Whether the last op before this one that wrote `ids` is a MOE_ROUTE among `experts`.
  bool routed_among(uint32_t ids, uint32_t experts) const {
    for (uint32_t i = index_; i-- > 0;) {
      const kvb_op& writer = program_.ops[i];
      if (writer.out[1] == ids) return writer.code == KVB_OP_MOE_ROUTE && writer.param[0] == experts;
    }
    return false;
  }

  kv_status moe_sum() const {
    KV_TRY(require(activation_value(in(0)) && activation_value(in(1)) && activation_value(out()),
                   "inputs and output are not f32 activations"));
    KV_TRY(require(in(1).depth == 1 && in(1).rows == in(0).rows && in(1).width == in(0).depth,
                   "the weights are not [T, used]"));
    return require(out().depth == 1 && out().rows == in(0).rows && out().width == in(0).width,
                   "the output is not [T, n]");
  }

  kv_status top_k() const {
    KV_TRY(require(activation_value(in(0)) && in(0).depth == 1, "the scores are not [O, n]"));
    KV_TRY(require(param(0) > 0 && param(0) <= in(0).width, "k is not in 1 .. n"));
    KV_TRY(require(activation_value(out()) && same_rows(in(0), out()) && out().width == param(0),
                   "the output is not [O, k]"));
    return require(ids_value(out(1)) && same_rows(in(0), out(1)) && out(1).width == param(0),
                   "the ids are not i32 [O, k]");
  }

  const Program& program_;
  const CacheLayout& cache_;
  const kvb_op& op_;
  uint32_t index_;
  kv_error* error_;
  const char* name_ = "";
};

}  // namespace kvasir::sdk
