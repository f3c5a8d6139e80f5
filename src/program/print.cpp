// SPDX-License-Identifier: MIT
#include "program/print.h"

namespace kvasir {

namespace {

constexpr uint16_t kNoLayer = 0xffff;

// "%7[T,64]", "w12[64,64]", "out[O,512]"
std::string value_text(const Program& program, uint32_t id) {
  const kvb_value& value = program.values[id];
  std::string text;
  if (value.kind == KVB_VALUE_WEIGHT) {
    text.append("w").append(std::to_string(value.place)).append("[").append(std::to_string(value.rows));
  } else {
    if (value.kind == KVB_VALUE_OUTPUT) text.append("out[");
    if (value.kind == KVB_VALUE_SCRATCH) text.append("%").append(std::to_string(id)).append("[");
    text.append(value.rows == KVB_ROWS_TOKENS ? "T" : "O");
  }
  return text.append(",").append(std::to_string(value.width)).append("]");
}

}  // namespace

std::string op_name(uint16_t code) {
  switch (code) {
    case KVB_OP_EMBED: return "EMBED";
    case KVB_OP_RMS_NORM: return "RMS_NORM";
    case KVB_OP_LINEAR: return "LINEAR";
    case KVB_OP_ROPE: return "ROPE";
    case KVB_OP_KV_STORE: return "KV_STORE";
    case KVB_OP_ATTENTION: return "ATTENTION";
    case KVB_OP_GLU: return "GLU";
    case KVB_OP_ADD: return "ADD";
    case KVB_OP_SELECT_ROWS: return "SELECT_ROWS";
    case KVB_OP_LAYER_NORM: return "LAYER_NORM";
    case KVB_OP_ACTIVATION: return "ACTIVATION";
    case KVB_OP_SCALE: return "SCALE";
    case KVB_OP_SOFTCAP: return "SOFTCAP";
    case KVB_OP_COPY_HEADS: return "COPY_HEADS";
    case KVB_OP_HEAD_LINEAR: return "HEAD_LINEAR";
    case KVB_OP_MOE_ROUTE: return "MOE_ROUTE";
    case KVB_OP_MOE_LINEAR: return "MOE_LINEAR";
    case KVB_OP_MOE_SUM: return "MOE_SUM";
    case KVB_OP_TOP_K: return "TOP_K";
    default: return "op " + std::to_string(code);
  }
}

std::string op_text(const Program& program, size_t op) {
  const kvb_op& o = program.ops[op];
  const std::string where = o.layer == kNoLayer ? "" : "blk." + std::to_string(o.layer) + ": ";
  const std::string name = program.names[op][0] == '\0' ? "" : std::string(" ") + program.names[op];
  return where + op_name(o.code) + name;
}

std::string print(const Program& program) {
  std::string text;
  for (const kvb_op& op : program.ops) {
    if (op.flags & KVB_OP_FLAG_GROUP_BEGIN) text += "-- group " + std::to_string(op.group) + "\n";
    if (op.out[0] != KVB_NONE) text += value_text(program, op.out[0]) + " = ";
    text += op_name(op.code);
    for (size_t i = 0; i < 6; i++) {
      if (op.in[i] != KVB_NONE) text += (i == 0 ? " " : ", ") + value_text(program, op.in[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace kvasir
