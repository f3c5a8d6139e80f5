// SPDX-License-Identifier: MIT
//
// kvasir info: gathers what is in a model file and what its cache costs. info_report.cpp shows it.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "info_report.h"
#include "text.h"

namespace kvasir::cli {
namespace {

struct Flags {
  std::string model;
  std::string device = "auto";
  std::string budget;
  InfoSections sections;
  bool json = false;
};

CacheCost cache_cost(kv_model* model, const Flags& flags, uint64_t budget, uint32_t type) {
  CacheCost cost;
  cost.type = type;
  auto options = sized<kv_context_options>();
  options.device = flags.device.c_str();
  options.k_type = options.v_type = type;
  options.memory_budget = budget;
  auto error = sized<kv_error>();
  cost.plan = sized<kv_memory_plan>();
  kv_status status = kv_context_plan(model, &options, &cost.plan, &error);
  if (status == KV_OUT_OF_MEMORY && budget != 0) {  // not even one page: what a token takes is still worth knowing
    cost.problem = error.message;
    options.memory_budget = 0;
    status = kv_context_plan(model, &options, &cost.plan, &error);
    cost.plan.max_tokens = cost.plan.cache_bytes = 0;
  }
  if (status == KV_NOT_FOUND) throw Failure(status, error.message);  // no such device: the same for all types
  cost.known = status == KV_OK;
  if (!cost.known) cost.problem = error.message;
  return cost;
}

InfoReport gather(const Flags& flags, kv_model* model) {
  InfoReport report;
  report.path = flags.model;
  report.device = flags.device;
  report.budget = flags.budget.empty() ? 0 : parse_bytes(flags.budget);
  report.model = get<kv_model_info>(kv_model_get_info, model);
  report.tokenizer = kv_model_tokenizer(model);
  if (report.tokenizer != nullptr) report.tokens = get<kv_tokenizer_info>(kv_tokenizer_get_info, report.tokenizer);
  for (size_t t = 0; t < report.model.tensors; t++) {
    report.tensors.push_back(get<kv_tensor_info>(kv_model_tensor_at, model, t));
    TypeTotal& total = report.types[report.tensors.back().type];
    total.tensors++;
    total.bytes += report.tensors.back().bytes;
  }
  for (size_t m = 0; m < report.model.metadata; m++) {
    report.metadata.push_back(get<kv_metadata>(kv_model_metadata_at, model, m));
  }
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0}) {
    report.cache.push_back(cache_cost(model, flags, report.budget, type));
  }
  return report;
}

int run_info(const Flags& flags) {
  const RuntimePtr runtime = open_runtime();
  const ModelPtr model = open_model(runtime.get(), flags.model, nullptr);
  const InfoReport report = gather(flags, model.get());
  (flags.json ? print_info_json : print_info)(report, model.get(), flags.sections);
  return kSuccess;
}

}  // namespace

Command add_info(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("info", "what is in a model file, and what its cache costs");
  add_model_flag(app, flags->model)->required();
  app.add_option("--device", flags->device, "device the cache would be on")->type_name("NAME")->capture_default_str();
  app.add_option("--budget", flags->budget, "how many tokens fit in this much memory (weights not counted): 2GiB")
      ->type_name("SIZE");
  app.add_flag("--metadata", flags->sections.metadata, "list the keys and values of the file");
  app.add_flag("--tensors", flags->sections.tensors, "list the tensors");
  app.add_flag("--json", flags->json, "as JSON");
  return {&app, [flags] { return run_info(*flags); }};
}

}  // namespace kvasir::cli
