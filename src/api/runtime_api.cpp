// SPDX-License-Identifier: MIT
#include "api/boundary.h"
#include "api/handles.h"

using kvasir::Status;
using kvasir::api::check_out;
using kvasir::api::copy_in;
using kvasir::api::copy_out;
using kvasir::api::guard;

namespace {

uint32_t entry_kind(const kvasir::CandidateReport& candidate) {
  if (candidate.path.empty()) return KV_ENTRY_BUILT_IN;
  return candidate.directory ? KV_ENTRY_DIRECTORY : KV_ENTRY_PLUGIN;
}

}  // namespace

extern "C" {

kv_status kv_runtime_create(const kv_runtime_options* options, kv_runtime** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    kv_runtime_options own;
    KV_RETURN_IF_ERROR(copy_in("kv_runtime_options", options, &own));
    auto handle = std::make_unique<kv_runtime>();
    KV_RETURN_IF_ERROR(kvasir::Runtime::create(own, &handle->runtime));
    *out = handle.release();
    return {};
  });
}

void kv_runtime_release(kv_runtime* runtime) { delete runtime; }

kv_status kv_runtime_load_backend(kv_runtime* runtime, const char* path, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(runtime != nullptr, KV_INVALID_ARGUMENT, "runtime is NULL");
    KV_CHECK(path != nullptr, KV_INVALID_ARGUMENT, "path is NULL");
    return runtime->runtime->registry().load(path, nullptr);
  });
}

kv_status kv_backend_report_create(kv_runtime* runtime, kv_backend_report** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(runtime != nullptr, KV_INVALID_ARGUMENT, "runtime is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    auto report = std::make_unique<kv_backend_report>();
    runtime->runtime->registry().scan();
    report->candidates = runtime->runtime->registry().report();
    *out = report.release();
    return {};
  });
}

void kv_backend_report_release(kv_backend_report* report) { delete report; }

size_t kv_backend_report_count(const kv_backend_report* report) {
  return report == nullptr ? 0 : report->candidates.size();
}

kv_status kv_backend_report_entry(const kv_backend_report* report, size_t index, kv_backend_entry* out,
                                  kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(report != nullptr, KV_INVALID_ARGUMENT, "report is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_backend_entry", out));
    KV_CHECK(index < report->candidates.size(), KV_INVALID_ARGUMENT, "entry %zu of a report of %zu", index,
             report->candidates.size());
    const kvasir::CandidateReport& candidate = report->candidates[index];
    kv_backend_entry entry = {};
    entry.status = candidate.status;
    entry.name = candidate.name.c_str();
    entry.path = candidate.path.c_str();
    entry.version = candidate.version.c_str();
    entry.reason = candidate.reason.c_str();
    entry.device_count = static_cast<uint32_t>(candidate.devices.size());
    entry.kind = entry_kind(candidate);
    entry.origin = kvasir::origin_text(candidate.origin);
    copy_out(entry, out);
    return {};
  });
}

kv_status kv_backend_report_device(const kv_backend_report* report, size_t index, uint32_t device, kv_device_info* out,
                                   kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(report != nullptr, KV_INVALID_ARGUMENT, "report is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_device_info", out));
    KV_CHECK(index < report->candidates.size(), KV_INVALID_ARGUMENT, "entry %zu of a report of %zu", index,
             report->candidates.size());
    const kvasir::CandidateReport& candidate = report->candidates[index];
    KV_CHECK(device < candidate.devices.size(), KV_INVALID_ARGUMENT, "device %u of '%s', which has %zu", device,
             candidate.name.c_str(), candidate.devices.size());
    const kvasir::DeviceReport& d = candidate.devices[device];
    kv_device_info info = {};
    info.kind = d.kind;
    info.name = d.name.c_str();
    info.driver = d.driver.c_str();
    info.memory_total = d.memory_total;
    info.memory_available = d.memory_available;
    copy_out(info, out);
    return {};
  });
}

}  // extern "C"
