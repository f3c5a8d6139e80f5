// SPDX-License-Identifier: MIT
//
// Names and paths of backends from anywhere: file names, search paths, device names, a plugin named by its path. Nothing
// of that can open a plugin here; each must be an entry of the report or a sentence.
#include <string>
#include <vector>

#include "fuzz/host.h"
#include "loader/search.h"

namespace {

using namespace kvasir::fuzz;

std::string c_text(Bytes* bytes) {
  std::string text(bytes->text());
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

void check_names(const std::string& name) {
  const kvasir::PluginName parsed = kvasir::parse_plugin_name(name);
  if (!parsed.plugin_like) KV_REQUIRE(parsed.name.empty());
  if (!parsed.name.empty()) KV_REQUIRE(kvasir::valid_backend_name(parsed.name));
  if (kvasir::valid_backend_name(name)) {
    const std::string file = kvasir::plugin_file_name(name);
    const kvasir::PluginName again = kvasir::parse_plugin_name(file);
    KV_REQUIRE(again.plugin_like && again.name == name && again.status.ok());
  }
}

void check_search(const std::string& path, const std::string& environment) {
  for (const kvasir::SearchDirectory& directory : kvasir::search_directories({path}, environment, path)) {
    KV_REQUIRE(kvasir::origin_text(directory.origin)[0] != '\0');
  }
}

void check_report(kv_runtime* runtime) {
  kv_backend_report* report = nullptr;
  Error e;
  KV_REQUIRE(kv_backend_report_create(runtime, &report, &e) == KV_OK);
  const size_t count = kv_backend_report_count(report);
  for (size_t i = 0; i < count; ++i) {
    kv_backend_entry entry = sized<kv_backend_entry>();
    KV_REQUIRE(kv_backend_report_entry(report, i, &entry, &e) == KV_OK);
    KV_REQUIRE(entry.status == KV_OK || entry.reason[0] != '\0');
    kv_device_info device = sized<kv_device_info>();
    KV_REQUIRE(kv_backend_report_device(report, i, entry.device_count, &device, &e) == KV_INVALID_ARGUMENT);
  }
  kv_backend_entry none = sized<kv_backend_entry>();
  KV_REQUIRE(kv_backend_report_entry(report, count, &none, &e) == KV_INVALID_ARGUMENT);
  kv_backend_report_release(report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const std::string path = c_text(&bytes);
  const std::string other = c_text(&bytes);
  const std::string name = c_text(&bytes);
  check_names(name);
  check_search(path, other);

  kv_runtime_options options = sized<kv_runtime_options>();
  options.flags = KV_RUNTIME_IGNORE_ENVIRONMENT | (bytes.u8() & 0x0FU);
  options.backend_path = path.c_str();
  kv_runtime* runtime = nullptr;
  Error e;
  if (judged(kv_runtime_create(&options, &runtime, &e), e) != KV_OK) return 0;
  (void)judged(kv_runtime_load_backend(runtime, other.c_str(), &e), e);
  check_report(runtime);
  kv_runtime_release(runtime);
  return 0;
}
