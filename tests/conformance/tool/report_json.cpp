// SPDX-License-Identifier: MIT
//
// The conformance statement: everything a run found out, as one JSON object.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "catalogue.h"
#include "messages.h"
#include "report.h"

namespace kvasir::conformance {
namespace {

using Json = nlohmann::ordered_json;

Json plugin_json(const Report& report, const Options& options) {
  Json json{{"path", options.plugin}};
  if (!report.opened) return json;
  json["name"] = report.facts.name;
  json["version"] = report.facts.version;
  json["abi_major"] = report.facts.abi_version >> 16;
  json["abi_draft"] = report.facts.abi_version & 0xffffu;
  return json;
}

Json device_json(const Report& report) {
  if (!report.opened || report.facts.devices == 0) return nullptr;
  return {{"index", 0},
          {"kind", report.facts.kind},
          {"name", report.facts.device},
          {"driver", report.facts.driver},
          {"memory_total", report.facts.memory_total},
          {"variant", report.facts.variant}};
}

Json obligations_json(const std::string& obligations) {
  Json list = Json::array();
  std::istringstream words(obligations);
  for (std::string word; words >> word;) list.push_back(word);
  return list;
}

Json case_json(const Case& item, const Outcome& outcome) {
  Json figures = Json::array();
  for (const Figure& figure : outcome.figures) {
    figures.push_back({{"name", figure.name},
                       {"value", std::isfinite(figure.value) ? Json(figure.value) : Json(nullptr)},
                       {"unit", figure.unit}});
  }
  return {{"name", item.name},
          {"group", group_of(item)},
          {"profile", profile_name(item.profile)},
          {"obligations", obligations_json(item.obligations)},
          {"result", result_name(outcome.result)},
          {"reason", outcome.reason},
          {"milliseconds", outcome.milliseconds},
          {"figures", std::move(figures)}};
}

Json report_json(const Report& report, const std::vector<Case>& cases, const Options& options) {
  Json json{{"tool", {{"name", "kvasir-backend-test"}, {"version", tool_version()}}},
            {"abi", {{"major", KVB_ABI_MAJOR}, {"draft", KVB_ABI_DRAFT}}},
            {"profile", profile_name(options.profile)},
            {"filters", options.filters},
            {"plugin", plugin_json(report, options)},
            {"device", device_json(report)}};
  if (report.opened && report.facts.devices == 0) json["no_device"] = report.facts.no_device;
  Json list = Json::array();
  Totals totals;
  if (!report.refusal.empty()) {
    const Outcome refused{Result::kFail, report.refusal, 0, {}};
    totals.add(refused.result);
    list.push_back(case_json({kOpenCase, "KVB-4", Profile::kCore, {}}, refused));
  }
  for (size_t i = 0; i < report.outcomes.size(); ++i) {
    totals.add(report.outcomes[i].result);
    list.push_back(case_json(cases[i], report.outcomes[i]));
  }
  json["cases"] = std::move(list);
  json["totals"] = {{"cases", totals.cases()},
                    {"pass", totals.pass},
                    {"fail", totals.fail},
                    {"unsupported", totals.unsupported},
                    {"expected_failure", totals.expected_failure},
                    {"milliseconds", report.milliseconds}};
  json["conforms"] = !report.failed();
  return json;
}

}  // namespace

void write_json(const Report& report, const std::vector<Case>& cases, const Options& options) {
  const std::string text = dump(report_json(report, cases, options), 2) + "\n";
  if (options.json == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw std::runtime_error("cannot write to standard output");
    }
    return;
  }
  std::ofstream file(options.json, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + options.json + "'");
}

}  // namespace kvasir::conformance
