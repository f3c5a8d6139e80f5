// SPDX-License-Identifier: MIT
//
// The tables and the JSON of `kvasir info`.
#include "info_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;
using ull = unsigned long long;

constexpr size_t kShownText = 60;       // bytes of a long text
constexpr uint64_t kShownElements = 5;  // of an array

std::string scalar_text(const kv_metadata& value) {
  switch (value.kind) {
    case KV_METADATA_INTEGER:
      return value.is_unsigned != 0 ? std::to_string(static_cast<uint64_t>(value.integer))
                                    : std::to_string(value.integer);
    case KV_METADATA_FLOAT: return format("%g", value.real);
    case KV_METADATA_BOOL: return value.integer != 0 ? "true" : "false";
    default: break;
  }
  const bool cut = value.length > kShownText;
  return "\"" + printable(std::string(value.text, cut ? kShownText : value.length)) + "\"" + (cut ? "..." : "");
}

void print_line(const char* name, const std::string& text) { std::printf("%-14s %s\n", name, text.c_str()); }

void print_model(const InfoReport& report) {
  const kv_model_info& m = report.model;
  print_line("file", report.path);
  if (m.name[0] != '\0') print_line("name", printable(m.name));
  print_line("architecture", printable(m.architecture));
  print_line("parameters", format("%llu (%.3g million)", ull{m.parameters}, static_cast<double>(m.parameters) / 1e6));
  print_line("weights", format("%s in %u tensors", bytes_text(m.tensor_bytes).c_str(), m.tensors));
  print_line("layers", std::to_string(m.layers));
  print_line("dim", std::to_string(m.dim));
  print_line("heads", format("%u query heads over %u key-value heads of %u (values %u)", m.heads, m.kv_heads,
                             m.head_dim, m.v_head_dim));
  print_line("ffn_dim", std::to_string(m.ffn_dim));
  print_line("vocabulary", std::to_string(m.vocab));
  print_line("context", m.context_length != 0 ? format("%u tokens", m.context_length) : "not stated");
}

void print_tokenizer(const InfoReport& report) {
  if (report.tokenizer == nullptr) return print_line("tokenizer", "none");
  const kv_tokenizer_info& t = report.tokens;
  std::string text =
      format("%s%s%s, %u tokens", t.kind, t.pre[0] != '\0' ? " / " : "", printable(t.pre).c_str(), t.vocab);
  const std::pair<const char*, int32_t> specials[] = {
      {"begin", t.bos}, {"end", t.eos}, {"end of turn", t.eot}, {"unknown", t.unk}};
  for (const auto& [name, token] : specials) {
    if (token >= 0) text += format(", %s %d %s", name, token, printable(token_text(report.tokenizer, token)).c_str());
  }
  print_line("tokenizer", text);
}

void print_types(const InfoReport& report) {
  Table table({"type", ">tensors", ">bytes", ">share"});
  for (const auto& [type, total] : report.types) {
    const double share = 100.0 * static_cast<double>(total.bytes) /
                         static_cast<double>(std::max<uint64_t>(1, report.model.tensor_bytes));
    table.add({kv_type_name(type), std::to_string(total.tensors), bytes_text(total.bytes), format("%.1f %%", share)});
  }
  std::printf("\n");
  table.print();
}

void print_cache(const InfoReport& report) {
  const std::string fits = report.budget != 0 ? ">tokens in " + bytes_text(report.budget) : ">tokens";
  Table table({"cache type", ">per token", fits, ">cache then", ">scratch"});
  for (const CacheCost& cost : report.cache) {
    if (!cost.known) {
      table.add({cache_type_name(cost.type), "-", "-", "-", "-"});
      continue;
    }
    std::string tokens = std::to_string(cost.plan.max_tokens);
    if (cost.plan.max_tokens == report.model.context_length) tokens += " (all of its context)";
    table.add({cache_type_name(cost.type), bytes_text(cost.plan.bytes_per_token), tokens,
               bytes_text(cost.plan.cache_bytes), bytes_text(cost.plan.scratch_bytes)});
  }
  std::printf("\n");
  table.print();
  std::string said;  // most problems are the same for all types
  for (const CacheCost& cost : report.cache) {
    if (!cost.problem.empty() && cost.problem != said) {
      std::printf("%s: %s\n", cache_type_name(cost.type).c_str(), cost.problem.c_str());
    }
    said = cost.problem;
  }
}

Json cache_json(const InfoReport& report) {
  Json out = Json::array();
  for (const CacheCost& cost : report.cache) {
    Json row = {{"type", cache_type_name(cost.type)}};
    if (cost.known) {
      row.update({{"bytes_per_token", cost.plan.bytes_per_token},
                  {"tokens", cost.plan.max_tokens},
                  {"cache_bytes", cost.plan.cache_bytes},
                  {"scratch_bytes", cost.plan.scratch_bytes}});
    }
    if (!cost.problem.empty()) row["problem"] = cost.problem;
    out.push_back(row);
  }
  return out;
}

Json model_json(const InfoReport& report) {
  const kv_model_info& m = report.model;
  return {{"file", report.path},
          {"name", m.name},
          {"architecture", m.architecture},
          {"parameters", m.parameters},
          {"bytes", m.tensor_bytes},
          {"layers", m.layers},
          {"dim", m.dim},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"v_head_dim", m.v_head_dim},
          {"ffn_dim", m.ffn_dim},
          {"vocab", m.vocab},
          {"context_length", m.context_length}};
}

Json tensors_json(const InfoReport& report) {
  Json out = Json::array();
  for (const kv_tensor_info& t : report.tensors) {
    out.push_back({{"name", t.name}, {"type", kv_type_name(t.type)}, {"bytes", t.bytes}, {"shape", t.shape}});
  }
  return out;
}

}  // namespace

std::string metadata_text(const kv_model* model, const kv_metadata& pair) {
  if (pair.kind != KV_METADATA_ARRAY) return scalar_text(pair);
  const std::string key(pair.key, pair.key_length);
  std::string text = "[";
  for (uint64_t i = 0; i < std::min(pair.count, kShownElements); i++) {
    const auto element = get<kv_metadata>(kv_model_metadata_element, model, key.c_str(), i);
    text += (i != 0 ? ", " : "") + scalar_text(element);
  }
  return text + (pair.count > kShownElements ? format(", ... %llu in all]", ull{pair.count}) : "]");
}

std::string shape_text(const kv_tensor_info& tensor) {
  std::string text;
  for (size_t d = 0; d < std::size(tensor.shape); d++) {
    if (text.empty() && tensor.shape[d] == 1 && d + 1 < std::size(tensor.shape)) continue;
    text += (text.empty() ? "" : " x ") + std::to_string(tensor.shape[d]);
  }
  return text;
}

void print_info(const InfoReport& report, const kv_model* model, InfoSections sections) {
  print_model(report);
  print_tokenizer(report);
  print_types(report);
  print_cache(report);
  if (sections.metadata) {
    Table table({"key", "value"});
    for (const kv_metadata& pair : report.metadata) {
      table.add({printable(std::string(pair.key, pair.key_length)), metadata_text(model, pair)});
    }
    std::printf("\n");
    table.print();
  }
  if (sections.tensors) {
    Table table({"tensor", "type", ">shape", ">bytes"});
    for (const kv_tensor_info& t : report.tensors) {
      table.add({printable(t.name), kv_type_name(t.type), shape_text(t), std::to_string(t.bytes)});
    }
    std::printf("\n");
    table.print();
  }
}

void print_info_json(const InfoReport& report, const kv_model* model, InfoSections sections) {
  Json out = model_json(report);
  if (report.tokenizer != nullptr) {
    const kv_tokenizer_info& t = report.tokens;
    out["tokenizer"] = {{"kind", t.kind}, {"pre", t.pre}, {"vocab", t.vocab}, {"bos", t.bos},
                        {"eos", t.eos},   {"eot", t.eot}, {"unk", t.unk}};
  }
  for (const auto& [type, total] : report.types) {
    out["types"][kv_type_name(type)] = {{"tensors", total.tensors}, {"bytes", total.bytes}};
  }
  if (report.budget != 0) out["budget"] = report.budget;
  out["cache"] = cache_json(report);
  if (sections.metadata) {
    for (const kv_metadata& pair : report.metadata) {
      out["metadata"][std::string(pair.key, pair.key_length)] = metadata_text(model, pair);
    }
  }
  if (sections.tensors) out["tensors"] = tensors_json(report);
  // A file's strings may be any bytes: what is no UTF-8 is replaced.
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace kvasir::cli
