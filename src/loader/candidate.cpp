// SPDX-License-Identifier: MIT
#include "loader/candidate.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/one_line.h"
#include "loader/elf_file.h"
#include "loader/library.h"
#include "loader/negotiate.h"
#include "loader/plugin_call.h"
#include "loader/trust.h"

namespace kvasir {
namespace {

constexpr uint32_t kMostDevices = 1024;  // a larger count is a fault of the plugin
constexpr const char* kNotAskedFor = "not opened: nobody has asked for it";

kv_error empty_error() {
  kv_error error = {};
  error.struct_size = sizeof error;
  return error;
}

// A plugin's text, read no further than it may go.
template <size_t N>
std::string bounded(const char (&text)[N]) {
  return one_line({text, strnlen(text, N)});
}

// A call of the plugin's table: its status with its sentence, the call's name in front.
template <class F>
Status call(const std::string& backend, const char* name, F&& body) {
  const std::string who = "backend '" + backend + "': " + name;
  return call_plugin(who.c_str(), [&]() -> Status {
    kv_error error = empty_error();
    const kv_status code = body(&error);
    if (code == KV_OK) return {};
    const std::string text = bounded(error.message);
    return Status::error(code, "%s failed with status %d: %s", who.c_str(), static_cast<int>(code),
                         text.empty() ? "no reason given" : text.c_str());
  });
}

}  // namespace

std::unique_ptr<Candidate> Candidate::directory(const SearchDirectory& place, const Status& outcome) {
  std::unique_ptr<Candidate> candidate(new Candidate);
  candidate->report_.path = place.path;
  candidate->report_.origin = place.origin;
  candidate->report_.directory = true;
  candidate->report_.status = outcome.code();
  candidate->report_.reason = outcome.message();
  return candidate;
}

std::unique_ptr<Candidate> Candidate::file(const std::string& path, Origin origin, const PluginName& name) {
  std::unique_ptr<Candidate> candidate(new Candidate);
  candidate->report_.name = name.name;
  candidate->report_.path = path;
  candidate->report_.origin = origin;
  candidate->report_.status = name.status.code();
  candidate->report_.reason = name.status.ok() ? kNotAskedFor : name.status.message();
  candidate->eligible_ = name.status.ok();
  return candidate;
}

std::unique_ptr<Candidate> Candidate::built_in(const StaticBackend& entry) {
  std::unique_ptr<Candidate> candidate(new Candidate);
  candidate->report_.name = entry.name;
  candidate->report_.origin = Origin::kBuiltIn;
  candidate->report_.reason = kNotAskedFor;
  candidate->built_in_ = entry.query;
  candidate->eligible_ = true;
  return candidate;
}

Candidate::~Candidate() {
  if (in_use()) backend_.api->instance_destroy(backend_.instance);
}

Status Candidate::use(const LoaderServices& services) {
  if (in_use()) return {};
  if (refused_) return Status::error(report_.status, "%s", report_.reason.c_str());
  if (!taken()) {
    Status status = open(services);
    // Too little memory says nothing about the file. Nor may an error of reading or linking a file that was found; one
    // that the application names again is tried again anyway.
    if (!status.ok()) {
      const bool may_pass = status.code() == KV_IO && report_.origin != Origin::kFile;
      refused_ = status.code() != KV_OUT_OF_MEMORY && !may_pass;
      return failed(std::move(status), services.log);
    }
  }
  Status status = instantiate(services.host);
  if (!status.ok()) return failed(std::move(status), services.log);
  report_.status = KV_OK;
  report_.reason.clear();
  services.log(KV_LOG_DEBUG, "backend '%s' %s from %s", backend_.name.c_str(), backend_.version.c_str(),
               backend_.path.empty() ? origin_text(report_.origin) : backend_.path.c_str());
  return {};
}

Status Candidate::failed(Status status, const Log& log) {
  report_.status = status.code();
  report_.reason = one_line(status.message());
  log(KV_LOG_WARNING, "backend '%s' cannot be used: %s", report_.name.c_str(), status.message());
  return status;
}

Status Candidate::open(const LoaderServices& services) {
  kvb_query_fn query = built_in_;
  if (query == nullptr) KV_RETURN_IF_ERROR(open_file(services, &query));
  const kvb_api* api = nullptr;
  const Status status = negotiate(query, report_.name, services.host, &api);
  if (!status.ok()) {
    const char* where = report_.path.empty() ? origin_text(report_.origin) : report_.path.c_str();
    return Status::error(status.code(), "backend '%s' (%.250s) is refused: %s", report_.name.c_str(), where,
                         status.message());
  }
  report_.version = one_line(api->version);
  backend_.name = report_.name;
  backend_.version = report_.version;
  backend_.api = api;  // last: from here on it counts as taken
  return {};
}

Status Candidate::open_file(const LoaderServices& services, kvb_query_fn* out) {
  std::string real_path;
  KV_RETURN_IF_ERROR(resolve_path(report_.path, &real_path));
  // A link may be called v0 and lead to a plugin of another ABI.
  const PluginName target = parse_plugin_name(std::filesystem::path(real_path).filename().string());
  KV_CHECK(target.status.code() != KV_INCOMPATIBLE, KV_INCOMPATIBLE, "'%.200s' leads to another ABI: %s",
           report_.path.c_str(), target.status.message());
  KV_RETURN_IF_ERROR(judge(services, real_path));
  KV_RETURN_IF_ERROR(check_elf_file(real_path));
  void* library = nullptr;
  KV_RETURN_IF_ERROR(open_library(real_path, &library));
  report_.opened = true;
  backend_.path = std::move(real_path);
  void* entry = library_symbol(library, KVB_ENTRY_SYMBOL);
  KV_CHECK(entry != nullptr, KV_INCOMPATIBLE, "'%.250s' is not a plugin: it has no symbol %s", report_.path.c_str(),
           KVB_ENTRY_SYMBOL);
  *out = reinterpret_cast<kvb_query_fn>(entry);
  return {};
}

Status Candidate::judge(const LoaderServices& services, const std::string& real_path) const {
  std::string warning;
  Status status = check_trust(real_path, services.library_directory, &warning);
  if (!warning.empty()) services.log(KV_LOG_WARNING, "plugin %s: %s", real_path.c_str(), warning.c_str());
  if (status.code() != KV_DENIED || !services.allow_untrusted_paths) return status;
  services.log(KV_LOG_WARNING, "plugin %s is opened because untrusted paths are allowed: %s", real_path.c_str(),
               status.message());
  return {};
}

Status Candidate::instantiate(const kvb_host& host) {
  kvb_instance* instance = nullptr;
  KV_RETURN_IF_ERROR(call(report_.name, "instance_create",
                          [&](kv_error* error) { return backend_.api->instance_create(&host, &instance, error); }));
  KV_CHECK(instance != nullptr, KV_INTERNAL, "backend '%s': instance_create succeeded without an instance",
           report_.name.c_str());
  backend_.instance = instance;
  return {};
}

Status Candidate::read_devices() {
  uint32_t count = 0;
  char reason[sizeof(kv_error::message)] = {};
  Status status = call(report_.name, "device_count", [&](kv_error* error) {
    return backend_.api->device_count(backend_.instance, &count, reason, sizeof reason, error);
  });
  if (status.ok()) status = describe(count);
  if (!status.ok()) {
    report_.devices.clear();
    report_.status = status.code();
    report_.reason = status.message();
    return status;
  }
  report_.status = KV_OK;
  report_.reason.clear();
  if (count == 0) {
    const std::string text = bounded(reason);
    report_.reason = "0 devices: " + (text.empty() ? std::string("the plugin gives no reason") : text);
  }
  return {};
}

Status Candidate::describe(uint32_t count) {
  KV_CHECK(count <= kMostDevices, KV_INTERNAL, "backend '%s' claims to have %u devices", report_.name.c_str(), count);
  std::vector<DeviceReport> devices;
  for (uint32_t index = 0; index < count; ++index) {
    kvb_device_info info = {};
    info.struct_size = sizeof info;
    const Status status = call(report_.name, "device_info", [&](kv_error* error) {
      return backend_.api->device_info(backend_.instance, index, &info, error);
    });
    DeviceReport device;
    if (status.ok()) {
      device = {info.kind, bounded(info.name), bounded(info.driver), info.memory_total, info.memory_available, {},
                KV_OK};
    } else {
      device.fault = status.message();
      device.fault_status = status.code();
    }
    devices.push_back(std::move(device));
  }
  report_.devices = std::move(devices);
  return {};
}

}  // namespace kvasir
