// SPDX-License-Identifier: MIT
//
// kvasir devices: what was looked at for backends, what each offers, and why not where it does not.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "session.h"
#include "text.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Backend {
  kv_backend_entry entry;
  std::vector<kv_device_info> devices;
};

std::vector<Backend> list_backends(const kv_backend_report* report) {
  std::vector<Backend> backends(kv_backend_report_count(report));
  for (size_t b = 0; b < backends.size(); b++) {
    backends[b].entry = get<kv_backend_entry>(kv_backend_report_entry, report, b);
    for (uint32_t d = 0; d < backends[b].entry.device_count; d++) {
      backends[b].devices.push_back(get<kv_device_info>(kv_backend_report_device, report, b, d));
    }
  }
  return backends;
}

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case KV_DEVICE_CPU: return "cpu";
    case KV_DEVICE_GPU: return "gpu";
    case KV_DEVICE_INTEGRATED_GPU: return "integrated gpu";
    case KV_DEVICE_SOFTWARE: return "software";
    default: return "other";
  }
}

std::string memory_text(const kv_device_info& device) {
  if (device.memory_total == 0) return "";
  return bytes_text(device.memory_available) + " of " + bytes_text(device.memory_total);
}

void print_tables(const std::vector<Backend>& backends) {
  Table devices({"device", "kind", "name", ">memory free", "driver"});
  Table files({"backend", "version", "status", "path", "why"});
  for (const Backend& backend : backends) {
    const kv_backend_entry& entry = backend.entry;
    for (size_t d = 0; d < backend.devices.size(); d++) {
      const kv_device_info& device = backend.devices[d];
      devices.add({entry.name + (":" + std::to_string(d)), kind_name(device.kind), printable(device.name),
                   memory_text(device), printable(device.driver)});
    }
    const bool folder = entry.kind == KV_ENTRY_DIRECTORY;
    const std::string status = entry.status != KV_OK ? kv_status_name(entry.status) : folder ? "searched" : "loaded";
    files.add({entry.name[0] != '\0' ? printable(entry.name) : "-", printable(entry.version), status,
               entry.path[0] != '\0' ? printable(entry.path) : "built in", printable(entry.reason)});
  }
  if (devices.empty()) {
    std::printf("no devices\n");
  } else {
    devices.print();
  }
  std::printf("\n");
  files.print();
}

void print_json(const std::vector<Backend>& backends) {
  Json out = Json::array();
  for (const Backend& backend : backends) {
    const kv_backend_entry& entry = backend.entry;
    Json devices = Json::array();
    for (size_t d = 0; d < backend.devices.size(); d++) {
      const kv_device_info& device = backend.devices[d];
      devices.push_back({{"device", entry.name + (":" + std::to_string(d))},
                         {"kind", kind_name(device.kind)},
                         {"name", device.name},
                         {"driver", device.driver},
                         {"memory_total", device.memory_total},
                         {"memory_available", device.memory_available}});
    }
    out.push_back({{"backend", entry.name},
                   {"status", kv_status_name(entry.status)},
                   {"path", entry.path},
                   {"version", entry.version},
                   {"reason", entry.reason},
                   {"devices", devices}});
  }
  // Paths and driver names may be any bytes: what is no UTF-8 is replaced.
  std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int run_devices(bool json) {
  const RuntimePtr runtime = open_runtime();
  const auto report = make<ReportPtr>(kv_backend_report_create, runtime.get());
  const std::vector<Backend> backends = list_backends(report.get());
  if (json) {
    print_json(backends);
  } else {
    print_tables(backends);
  }
  return kSuccess;
}

}  // namespace

Command add_devices(CLI::App& parent) {
  const auto json = std::make_shared<bool>(false);
  CLI::App& app = *parent.add_subcommand("devices", "backends and their devices, with reasons where there are none");
  app.add_flag("--json", *json, "as JSON");
  return {&app, [json] { return run_devices(*json); }};
}

}  // namespace kvasir::cli
