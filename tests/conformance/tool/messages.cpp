// SPDX-License-Identifier: MIT
//
// Messages as JSON.
#include "messages.h"

namespace kvasir::conformance {
namespace {

using Json = nlohmann::ordered_json;

Json facts_to_json(const PluginFacts& facts) {
  return {{"name", facts.name},
          {"version", facts.version},
          {"abi_version", facts.abi_version},
          {"devices", facts.devices},
          {"device", facts.device},
          {"driver", facts.driver},
          {"no_device", facts.no_device},
          {"variant", facts.variant},
          {"kind", facts.kind},
          {"memory_total", facts.memory_total}};
}

PluginFacts facts_from_json(const Json& json) {
  PluginFacts facts;
  facts.name = json.at("name");
  facts.version = json.at("version");
  facts.abi_version = json.at("abi_version");
  facts.devices = json.at("devices");
  facts.no_device = json.at("no_device");
  facts.device = json.at("device");
  facts.driver = json.at("driver");
  facts.variant = json.at("variant");
  facts.kind = json.at("kind");
  facts.memory_total = json.at("memory_total");
  return facts;
}

Json outcome_to_json(const Outcome& outcome) {
  Json figures = Json::array();
  for (const Figure& figure : outcome.figures) figures.push_back({figure.name, figure.value, figure.unit});
  return {{"result", static_cast<int>(outcome.result)},
          {"reason", outcome.reason},
          {"milliseconds", outcome.milliseconds},
          {"figures", figures}};
}

Outcome outcome_from_json(const Json& json) {
  Outcome outcome;
  outcome.result = static_cast<Result>(json.at("result").get<int>());
  outcome.reason = json.at("reason");
  outcome.milliseconds = json.at("milliseconds");
  for (const Json& figure : json.at("figures")) {
    const double value = figure.at(1).is_number() ? figure.at(1).get<double>() : 0;  // NaN is null in JSON
    outcome.figures.push_back({figure.at(0), value, figure.at(2)});
  }
  return outcome;
}

}  // namespace

std::string dump(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_line(const Message& message) {
  Json json{{"kind", static_cast<int>(message.kind)}, {"index", message.index}};
  if (message.kind == MessageKind::kOpened) json["facts"] = facts_to_json(message.facts);
  if (message.kind == MessageKind::kRefused) json["refusal"] = message.refusal;
  if (message.kind == MessageKind::kEnd) json["outcome"] = outcome_to_json(message.outcome);
  return dump(json) + "\n";
}

Message from_line(const std::string& line) {
  const Json json = Json::parse(line);
  Message message;
  message.kind = static_cast<MessageKind>(json.at("kind").get<int>());
  message.index = json.at("index");
  if (message.kind == MessageKind::kOpened) message.facts = facts_from_json(json.at("facts"));
  if (message.kind == MessageKind::kRefused) message.refusal = json.at("refusal");
  if (message.kind == MessageKind::kEnd) message.outcome = outcome_from_json(json.at("outcome"));
  return message;
}

}  // namespace kvasir::conformance
