// SPDX-License-Identifier: MIT
//
// Facts about each op of kvasir/ops.h that need no shapes: its name, which operands and parameters it has, which input
// may be the output too. verify_ops.h has what needs shapes.
#pragma once

#include <cstdint>

#include "kvasir/ops.h"

namespace kvasir::sdk {

struct OpFacts {
  uint16_t code;
  const char* name;
  uint8_t inputs;    // bit i: in[i] may be given
  uint8_t required;  // bit i: in[i] must be given
  uint8_t outputs;   // out[0 .. outputs) are given
  uint8_t params;    // bit i: param[i] has a meaning
  uint8_t in_place;  // bit i: in[i] may be the same value as out[0]
};

inline constexpr OpFacts kOps[] = {
    {KVB_OP_EMBED, "EMBED", 0b11, 0, 1, 0b1, 0},
    {KVB_OP_RMS_NORM, "RMS_NORM", 0b11, 0b1, 1, 0b11, 0b1},
    {KVB_OP_LINEAR, "LINEAR", 0b111, 0b11, 1, 0b1, 0},
    {KVB_OP_ROPE, "ROPE", 0b1, 0b1, 1, 0b111, 0b1},
    {KVB_OP_KV_STORE, "KV_STORE", 0b11, 0b1, 0, 0b1, 0},
    {KVB_OP_ATTENTION, "ATTENTION", 0b111, 0b1, 1, 0b1111, 0},
    {KVB_OP_GLU, "GLU", 0b11, 0b1, 1, 0b1, 0b11},
    {KVB_OP_ADD, "ADD", 0b11, 0b11, 1, 0, 0b11},
    {KVB_OP_SELECT_ROWS, "SELECT_ROWS", 0b1, 0b1, 1, 0, 0},
    {KVB_OP_LAYER_NORM, "LAYER_NORM", 0b111, 0b1, 1, 0b1, 0b1},
    {KVB_OP_ACTIVATION, "ACTIVATION", 0b1, 0b1, 1, 0b1, 0b1},
    {KVB_OP_SCALE, "SCALE", 0b1, 0b1, 1, 0b1, 0b1},
    {KVB_OP_SOFTCAP, "SOFTCAP", 0b1, 0b1, 1, 0b1, 0b1},
    {KVB_OP_COPY_HEADS, "COPY_HEADS", 0b11, 0b1, 1, 0b11111, 0b10},
    {KVB_OP_HEAD_LINEAR, "HEAD_LINEAR", 0b11, 0b11, 1, 0b1, 0},
    {KVB_OP_MOE_ROUTE, "MOE_ROUTE", 0b11, 0b1, 2, 0b11111, 0},
    {KVB_OP_MOE_LINEAR, "MOE_LINEAR", 0b1111, 0b1011, 1, 0, 0},
    {KVB_OP_MOE_SUM, "MOE_SUM", 0b11, 0b11, 1, 0, 0},
    {KVB_OP_TOP_K, "TOP_K", 0b1, 0b1, 2, 0b1, 0},
};

// NULL for a code that is no op.
constexpr const OpFacts* op_facts(uint16_t code) {
  for (const OpFacts& facts : kOps) {
    if (facts.code == code) return &facts;
  }
  return nullptr;
}

constexpr const char* op_name(uint16_t code) {
  const OpFacts* facts = op_facts(code);
  return facts != nullptr ? facts->name : "unknown op";
}

}  // namespace kvasir::sdk
