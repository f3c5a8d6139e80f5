// SPDX-License-Identifier: MIT
//
// What becomes of a case, and what the tool finds out about the plugin before the first one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suite/suite.h"

namespace kvasir::conformance {

enum class Result { kPass, kFail, kUnsupported, kExpectedFailure };

struct Outcome {
  Result result = Result::kPass;
  std::string reason;  // "" for a pass
  double milliseconds = 0;
  std::vector<Figure> figures;
};

// The plugin as its own table and its first device describe it.
struct PluginFacts {
  std::string name, version;
  uint32_t abi_version = 0;
  uint32_t devices = 0;
  std::string no_device;  // why there are none
  std::string device, driver, variant;
  uint32_t kind = 0;  // KVB_DEVICE_*
  uint64_t memory_total = 0;
};

}  // namespace kvasir::conformance
