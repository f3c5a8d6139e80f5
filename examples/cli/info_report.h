// SPDX-License-Identifier: MIT
//
// What `kvasir info` says about a model, gathered once and shown as tables or as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session.h"

namespace kvasir::cli {

struct TypeTotal {
  uint32_t tensors = 0;
  uint64_t bytes = 0;
};

struct CacheCost {
  uint32_t type = 0;
  bool known = false;        // whether there is a plan
  kv_memory_plan plan = {};  // with the budget, if one was given
  std::string problem;       // why there is no plan, or why nothing fits the budget; else ""
};

struct InfoReport {
  std::string path;
  std::string device;
  uint64_t budget = 0;  // 0 = none
  kv_model_info model = {};
  const kv_tokenizer* tokenizer = nullptr;
  kv_tokenizer_info tokens = {};  // when there is a tokenizer
  std::map<uint32_t, TypeTotal> types;
  std::vector<kv_tensor_info> tensors;
  std::vector<kv_metadata> metadata;
  std::vector<CacheCost> cache;  // for every cache type
};

// A metadata value in one line; long texts and arrays are cut.
std::string metadata_text(const kv_model* model, const kv_metadata& pair);
// [1, 1, 4, 8] as "4 x 8".
std::string shape_text(const kv_tensor_info& tensor);

struct InfoSections {
  bool metadata = false;
  bool tensors = false;
};
void print_info(const InfoReport& report, const kv_model* model, InfoSections sections);
void print_info_json(const InfoReport& report, const kv_model* model, InfoSections sections);

}  // namespace kvasir::cli
