// SPDX-License-Identifier: MIT
//
// Registry::choose: from what an application asks for to one device. Strict by name; `auto` says what it passed over.
#include <algorithm>
#include <charconv>
#include <utility>

#include "base/one_line.h"
#include "loader/candidate.h"

namespace kvasir {
namespace {

constexpr std::string_view kPreference[] = {"cuda", "vulkan", "cpu"};
constexpr uint32_t kNoDevice = UINT32_MAX;

bool is_software(const DeviceReport& device) { return device.kind == KVB_DEVICE_SOFTWARE; }

// The most capable kind first, then the plugin's own order. kNoDevice: none that can be described.
uint32_t best_device(const std::vector<DeviceReport>& devices) {
  const auto rank = [](const DeviceReport& device) {
    switch (device.kind) {
      case KVB_DEVICE_GPU: return 0;
      case KVB_DEVICE_INTEGRATED_GPU: return 1;
      case KVB_DEVICE_SOFTWARE: return 3;
      default: return 2;
    }
  };
  uint32_t best = kNoDevice;
  for (uint32_t index = 0; index < devices.size(); ++index) {
    if (!devices[index].fault.empty()) continue;
    if (best == kNoDevice || rank(devices[index]) < rank(devices[best])) best = index;
  }
  return best;
}

// Too little memory for a look at it does not mean that a device is not there.
kv_status code_of_fault(kv_status status) { return status == KV_OUT_OF_MEMORY ? status : KV_NOT_FOUND; }

Status no_device(const CandidateReport& report) {
  if (!report.devices.empty()) {
    const DeviceReport& first = report.devices[0];
    return Status::error(code_of_fault(first.fault_status), "%s", first.fault.c_str());
  }
  return Status::error(KV_NOT_FOUND, "backend '%s' has %s", report.name.c_str(), report.reason.c_str());
}

Status nothing_usable(const std::vector<PassedOver>& passed_over) {
  std::string reasons;
  kv_status code = KV_NOT_FOUND;
  for (const PassedOver& other : passed_over) {
    reasons += (reasons.empty() ? "" : "; ") + other.reason.substr(0, 150);
    if (other.status == KV_OUT_OF_MEMORY) code = KV_OUT_OF_MEMORY;
  }
  return Status::error(code, "no backend can be used: %s", reasons.c_str());
}

void take(const Candidate& candidate, uint32_t device, Choice* out) {
  out->backend = &candidate.backend();
  out->device = device;
  out->info = candidate.report().devices[device];
}

// "vulkan:1" into its parts; `index` stays kNoDevice when there is no colon.
Status parse_spec(std::string_view spec, std::string_view* name, uint32_t* index) {
  const int length = static_cast<int>(std::min<size_t>(spec.size(), 64));
  const size_t colon = spec.find(':');
  *name = spec.substr(0, colon);
  KV_CHECK(valid_backend_name(*name), KV_INVALID_ARGUMENT,
           "'%.*s' names no device: \"auto\", a backend (\"cpu\"), or a backend and a device number (\"vulkan:1\")",
           length, spec.data());
  if (colon == std::string_view::npos) return {};
  const char* end = spec.data() + spec.size();
  const auto parsed = std::from_chars(spec.data() + colon + 1, end, *index);
  KV_CHECK(parsed.ec == std::errc() && parsed.ptr == end && *index != kNoDevice, KV_INVALID_ARGUMENT,
           "'%.*s' names no device: what follows the colon is no device number from 0 to %u", length, spec.data(),
           kNoDevice - 1);
  return {};
}

}  // namespace

Status Registry::choose(const char* spec, Choice* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Choice choice;
  if (spec == nullptr || std::string_view(spec) == "auto") {
    KV_RETURN_IF_ERROR(choose_automatically(&choice));
  } else {
    KV_RETURN_IF_ERROR(choose_named(spec, &choice));
  }
  *out = std::move(choice);
  return {};
}

Status Registry::choose_named(std::string_view spec, Choice* out) {
  std::string_view name;
  uint32_t index = kNoDevice;
  KV_RETURN_IF_ERROR(parse_spec(spec, &name, &index));
  Candidate* candidate = nullptr;
  KV_RETURN_IF_ERROR(find_candidate(name, &candidate));
  KV_RETURN_IF_ERROR(candidate->read_devices());
  const std::vector<DeviceReport>& devices = candidate->report().devices;
  if (index == kNoDevice) index = best_device(devices);
  if (devices.empty() || index == kNoDevice) return no_device(candidate->report());
  KV_CHECK(index < devices.size(), KV_NOT_FOUND, "backend '%s' has no device %u: it has %zu, counted from 0",
           candidate->report().name.c_str(), index, devices.size());
  KV_CHECK(devices[index].fault.empty(), code_of_fault(devices[index].fault_status), "%s",
           devices[index].fault.c_str());
  take(*candidate, index, out);
  return {};
}

Status Registry::choose_automatically(Choice* out) {
  Choice software;  // taken when there is nothing else
  std::vector<PassedOver> passed_over;
  for (const std::string_view name : kPreference) {
    Choice found;
    const Status status = choose_named(name, &found);
    if (!status.ok()) {
      passed_over.push_back({std::string(name), status.code(), one_line(status.message())});
    } else if (is_software(found.info)) {
      passed_over.push_back({std::string(name), KV_UNSUPPORTED, "'" + found.info.name + "' is a GPU in software"});
      if (software.backend == nullptr) software = std::move(found);
    } else {
      *out = std::move(found);
      out->passed_over = std::move(passed_over);
      return {};
    }
  }
  if (software.backend == nullptr) return nothing_usable(passed_over);
  const auto chosen = std::find_if(passed_over.begin(), passed_over.end(),
                                   [&](const PassedOver& other) { return other.name == software.backend->name; });
  passed_over.erase(chosen);
  *out = std::move(software);
  out->passed_over = std::move(passed_over);
  return {};
}

}  // namespace kvasir
