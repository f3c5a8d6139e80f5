// SPDX-License-Identifier: MIT
#include "program/builder.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "program/rope.h"

namespace kvasir {

namespace {

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

uint32_t activation_code(Activation activation) {
  switch (activation) {
    case Activation::silu: return KVB_ACT_SILU;
    case Activation::gelu: return KVB_ACT_GELU;
    case Activation::gelu_tanh: return KVB_ACT_GELU_TANH;
    case Activation::relu: return KVB_ACT_RELU;
  }
  return KVB_ACT_SILU;
}

}  // namespace

Builder::Builder(const ModelConfig& config, const WeightSource& weights) : config_(config), weights_(weights) {
  program_.input_width = config.dim;
}

Builder::Value Builder::embed(const std::string& table) {
  const Value y = activation(KVB_ROWS_TOKENS, config_.dim);
  const uint32_t w = table.empty() ? KVB_NONE : weight(table, false);
  program_.takes_tokens = !table.empty();
  kvb_op& op = emit(KVB_OP_EMBED, "embed");
  op.in[0] = w;
  op.out[0] = y;
  op.param[0] = bits(config_.embedding_scale);
  return y;
}

Builder::Value Builder::rms_norm(Value x, const std::string& name, const char* trace_name) {
  const uint32_t w = weight(name, true);
  const Value y = activation(program_.values[x].rows, program_.values[x].width);
  kvb_op& op = emit(KVB_OP_RMS_NORM, trace_name);
  op.in[0] = x;
  op.in[1] = w;
  op.out[0] = y;
  op.param[0] = bits(config_.norm_eps);
  return y;
}

void Builder::rms_norm_heads(Value x, const std::string& name, uint32_t head_dim, const char* trace_name) {
  const uint32_t w = weight(name, true);
  kvb_op& op = emit(KVB_OP_RMS_NORM, trace_name);
  op.in[0] = x;
  op.in[1] = w;
  op.out[0] = x;
  op.param[0] = bits(config_.norm_eps);
  op.param[1] = head_dim;
}

Builder::Value Builder::linear(Value x, const std::string& tensor, uint32_t width, const char* name) {
  const uint32_t w = weight(tensor + ".weight", false);
  const uint32_t b = optional_vector(tensor + ".bias");
  const Value y = activation(program_.values[x].rows, width);
  kvb_op& op = emit(KVB_OP_LINEAR, name);
  op.in[0] = x;
  op.in[1] = w;
  op.in[2] = b;
  op.out[0] = y;
  return y;
}

void Builder::rope(Value x, uint32_t heads, const RopeConfig& rope, const char* name) {
  if (rope.pairing == RopePairing::none) return;
  const uint32_t offset = rope_blob(rope);
  kvb_op& op = emit(KVB_OP_ROPE, name);
  op.in[0] = x;
  op.out[0] = x;
  op.param[0] = heads;
  op.param[1] = program_.values[x].width / heads;
  op.param[2] = offset;
}

void Builder::kv_store(Value k, Value v, const CacheShape& shape) {
  const uint32_t layer = cache_layer(shape);
  kvb_op& op = emit(KVB_OP_KV_STORE, "");
  op.in[0] = k;
  op.in[1] = v;
  op.param[0] = layer;
}

Builder::Value Builder::attention(Value q, const CacheShape& shape) {
  const uint32_t heads = program_.values[q].width / shape.k_dim;
  const Value y = activation(KVB_ROWS_TOKENS, heads * shape.v_dim);
  const float scale = config_.attention_scale != 0.0F
                          ? config_.attention_scale
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.k_dim)));
  const auto layer = static_cast<uint32_t>(program_.layer_group.size() - 1);
  kvb_op& op = emit(KVB_OP_ATTENTION, "attn");
  op.in[0] = q;
  op.out[0] = y;
  op.param[0] = layer;
  op.param[1] = heads;
  op.param[2] = bits(scale);
  op.param[3] = bits(config_.attention_softcap);
  return y;
}

Builder::Value Builder::glu(Value gate, Value up) {
  kvb_op& op = emit(KVB_OP_GLU, "glu");
  op.in[0] = gate;
  op.in[1] = up;
  op.out[0] = gate;
  op.param[0] = activation_code(config_.activation);
  return gate;
}

void Builder::add(Value x, Value y, const char* name) {
  kvb_op& op = emit(KVB_OP_ADD, name);
  op.in[0] = x;
  op.in[1] = y;
  op.out[0] = x;
}

Builder::Value Builder::select_rows(Value x) {
  const Value y = activation(KVB_ROWS_OUTPUTS, program_.values[x].width);
  kvb_op& op = emit(KVB_OP_SELECT_ROWS, "selected");
  op.in[0] = x;
  op.out[0] = y;
  return y;
}

void Builder::output(Value x) {
  program_.values[x].kind = KVB_VALUE_OUTPUT;
  program_.values[x].place = 0;
  program_.output_width = program_.values[x].width;
}

Status Builder::finish(Program* out) {
  if (!status_.ok()) return std::move(status_);
  *out = std::move(program_);
  return {};
}

void Builder::open_group(uint16_t kind) {
  group_ = kind;
  group_begins_ = true;
}

Builder::Value Builder::activation(uint32_t rows, uint32_t width) {
  kvb_value value = {};
  value.kind = KVB_VALUE_SCRATCH;
  value.type = KV_TYPE_F32;
  value.rows = rows;
  value.width = width;
  value.depth = 1;
  program_.values.push_back(value);
  return static_cast<Value>(program_.values.size() - 1);
}

uint32_t Builder::weight(const std::string& name, bool vector) {
  if (const auto known = weight_values_.find(name); known != weight_values_.end()) return known->second;
  const auto index = weights_.find(name);
  if (!index) {
    fail(Status::error(KV_NOT_FOUND, "tensor '%s' is missing", name.c_str()));
    return KVB_NONE;
  }
  const TensorInfo& info = weights_.info(*index);
  kvb_value value = {};
  value.kind = KVB_VALUE_WEIGHT;
  value.type = vector ? static_cast<uint32_t>(KV_TYPE_F32) : info.type;
  value.rows = static_cast<uint32_t>(vector ? 1 : info.dims[1]);
  value.width = static_cast<uint32_t>(info.dims[0]);
  value.depth = 1;
  value.place = program_.weights.size();
  program_.weights.push_back({*index, vector});
  program_.values.push_back(value);
  const auto id = static_cast<uint32_t>(program_.values.size() - 1);
  weight_values_[name] = id;
  return id;
}

uint32_t Builder::optional_vector(const std::string& name) { return has(name) ? weight(name, true) : KVB_NONE; }

uint32_t Builder::rope_blob(const RopeConfig& rope) {
  if (const auto known = ropes_.find(&rope); known != ropes_.end()) return known->second;
  RopeTable table;
  if (Status status = make_rope_table(rope, weights_, &table); !status.ok()) {
    fail(std::move(status));
    return 0;
  }
  const auto offset = static_cast<uint32_t>(program_.blob.size() * sizeof(double));
  kvb_rope header = {};
  header.pairing = rope.pairing == RopePairing::adjacent ? KVB_ROPE_ADJACENT : KVB_ROPE_HALVES;
  header.first = 0;
  header.pairs = static_cast<uint32_t>(table.frequency.size());
  header.magnitude = table.magnitude;
  static_assert(sizeof header == 2 * sizeof(double));
  program_.blob.resize(program_.blob.size() + 2);
  std::memcpy(&program_.blob[offset / sizeof(double)], &header, sizeof header);
  program_.blob.insert(program_.blob.end(), table.frequency.begin(), table.frequency.end());
  ropes_[&rope] = offset;
  return offset;
}

uint32_t Builder::cache_layer(const CacheShape& shape) {
  uint32_t group = 0;
  while (group < program_.cache_groups.size() && program_.cache_groups[group] != shape) group++;
  if (group == program_.cache_groups.size()) program_.cache_groups.push_back(shape);
  program_.layer_group.push_back(group);
  return static_cast<uint32_t>(program_.layer_group.size() - 1);
}

kvb_op& Builder::emit(uint16_t code, const char* name) {
  kvb_op op = {};
  op.code = code;
  op.group = group_;
  op.layer = layer_;
  if (group_ != 0 && group_begins_) op.flags = KVB_OP_FLAG_GROUP_BEGIN;
  group_begins_ = false;
  for (uint32_t& in : op.in) in = KVB_NONE;
  for (uint32_t& out : op.out) out = KVB_NONE;
  program_.ops.push_back(op);
  program_.names.push_back(name);
  return program_.ops.back();
}

void Builder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace kvasir
