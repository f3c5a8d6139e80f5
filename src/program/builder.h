// SPDX-License-Identifier: MIT
//
// Builder: what src/arch writes a model with. Each call emits one op and returns the value it made, so that a family
// reads like the paper. Tensors are found by name; a bias is added where "x.bias" stands beside "x.weight".
// The tensors must have passed check_tensors; what is wrong all the same is remembered and reported by finish().
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "model/config.h"
#include "model/weights.h"
#include "program/program.h"

namespace kvasir {

class Builder {
 public:
  using Value = uint32_t;  // index in Program::values

  Builder(const ModelConfig& config, const WeightSource& weights);

  const ModelConfig& config() const { return config_; }
  bool has(const std::string& tensor) const { return weights_.find(tensor).has_value(); }

  // Ops from here on belong to this decoder layer (traces and messages) until end_layers().
  void begin_layer(uint32_t layer) { layer_ = static_cast<uint16_t>(layer); }
  void end_layers() { layer_ = kNoLayer; }

  // Ops emitted while a Group lives form one canonical group.
  class Group {
   public:
    Group(Builder& builder, uint16_t kind) : builder_(builder) { builder_.open_group(kind); }
    ~Group() { builder_.close_group(); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    Builder& builder_;
  };

  Value embed(const std::string& table);                                 // [T, dim]; empty name: rows only
  Value rms_norm(Value x, const std::string& weight, const char* name);  // whole rows
  void rms_norm_heads(Value x, const std::string& weight, uint32_t head_dim, const char* name);  // in place
  Value linear(Value x, const std::string& tensor, uint32_t width, const char* name);  // tensor without ".weight"
  void rope(Value x, uint32_t heads, const RopeConfig& rope, const char* name);        // in place
  void kv_store(Value k, Value v, const CacheShape& shape);
  Value attention(Value q, const CacheShape& shape);  // [T, heads * v_dim]
  Value glu(Value gate, Value up);                    // in place of gate
  void add(Value x, Value y, const char* name);       // x += y
  Value select_rows(Value x);                         // [O, width]
  void output(Value x);                               // the last call

  Status finish(Program* out);

 private:
  static constexpr uint16_t kNoLayer = 0xffff;

  void open_group(uint16_t kind);
  void close_group() { group_ = 0; }
  Value activation(uint32_t rows, uint32_t width);
  uint32_t weight(const std::string& name, bool vector);  // value, or KVB_NONE after recording the failure
  uint32_t optional_vector(const std::string& name);      // value, or KVB_NONE when the tensor is absent
  uint32_t rope_blob(const RopeConfig& rope);             // byte offset
  uint32_t cache_layer(const CacheShape& shape);
  kvb_op& emit(uint16_t code, const char* name);
  void fail(Status status);

  const ModelConfig& config_;
  const WeightSource& weights_;
  Program program_;
  std::map<std::string, uint32_t> weight_values_;
  std::map<const RopeConfig*, uint32_t> ropes_;
  Status status_;
  uint16_t layer_ = kNoLayer;
  uint16_t group_ = 0;
  bool group_begins_ = false;
};

}  // namespace kvasir
