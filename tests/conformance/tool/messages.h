// SPDX-License-Identifier: MIT
//
// What a worker tells its supervisor through the pipe: one JSON object per line.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "outcome.h"

namespace kvasir::conformance {

enum class MessageKind { kOpened, kRefused, kBegin, kEnd };

struct Message {
  MessageKind kind = MessageKind::kBegin;
  size_t index = 0;     // kBegin, kEnd: in the selected cases
  PluginFacts facts;    // kOpened
  std::string refusal;  // kRefused: why no case can run
  Outcome outcome;      // kEnd
};

std::string to_line(const Message& message);
// Throws when `line` is no message, which only a plugin that writes into the pipe can bring about.
Message from_line(const std::string& line);

// The text with bytes that are no UTF-8 replaced; plugins may write anything into a sentence.
std::string dump(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace kvasir::conformance
