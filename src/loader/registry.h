// SPDX-License-Identifier: MIT
//
// The backends of one runtime: found, judged, opened and instantiated on demand, and a report of all that was looked
// at. Asking for one backend opens no other one. Opened plugins stay mapped for the life of the process; instances end
// with the registry, so devices must be closed before it goes. Thread-safe, each call under one lock; the log callback
// is called under it and must not call back.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kvasir/backend.h"
#include "loader/search.h"
#include "loader/static_table.h"

namespace kvasir {

class Candidate;
struct LoaderServices;

struct LoaderOptions {
  std::vector<std::string> directories;  // searched before all others; absolute
  bool ignore_environment = false;       // KVASIR_BACKEND_PATH is not read
  bool no_search = false;                // only `directories`, load() and built-in backends
  bool allow_untrusted_paths = false;    // what trust.h refuses is opened all the same, with a warning in the log
  std::span<const StaticBackend> built_in = {kvasir_static_backends, kvasir_static_backend_count};
};

// A backend that is ready for use. Lives as long as its registry.
struct Backend {
  std::string name;     // "cpu"
  std::string version;  // of the plugin
  std::string path;     // links resolved; "" when it is part of the library
  const kvb_api* api = nullptr;
  kvb_instance* instance = nullptr;
};

struct DeviceReport {
  uint32_t kind = 0;  // KVB_DEVICE_*
  std::string name;
  std::string driver;
  uint64_t memory_total = 0;       // bytes; 0 = unknown
  uint64_t memory_available = 0;   // when the devices were last read
  std::string fault;               // why the plugin could not describe it; then it cannot be chosen
  kv_status fault_status = KV_OK;  // of that
};

// One plugin, built-in backend or searched directory, and what came of it.
struct CandidateReport {
  std::string name;                   // "cpu"; "" for a directory, or a file whose name carries no backend name
  std::string path;                   // as found; "" for a built-in backend
  Origin origin = Origin::kFile;      // see origin_text
  bool directory = false;             // a searched directory, not a plugin
  bool opened = false;                // code of this plugin has been mapped
  kv_status status = KV_OK;           // KV_OK: usable, or not asked for yet, or a directory that was read
  std::string reason;                 // one sentence; with status KV_OK empty, or why it has no device or is unopened
  std::string version;                // of the plugin, once it is opened
  std::vector<DeviceReport> devices;  // once they have been asked for
};

struct PassedOver {
  std::string name;  // "cuda"
  kv_status status;
  std::string reason;
};

struct Choice {
  const Backend* backend = nullptr;
  uint32_t device = 0;                  // index for device_open
  DeviceReport info;                    // of that device
  std::vector<PassedOver> passed_over;  // "auto": what would have been preferred, and why it was not taken
};

class Registry {
 public:
  // Reads the environment, and nothing else. `host` is what plugins get; its struct_size and abi_version are set here,
  // and what it points to must outlive the registry.
  Registry(LoaderOptions options, const kvb_host& host);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The backend of that name: the first one in search order, or the reason why that one cannot be used.
  Status find(std::string_view name, const Backend** out);

  // The plugin in that file (absolute path), which then is the one of its name. `out` may be null. Fails when another
  // file already serves the name.
  Status load(const std::string& path, const Backend** out);

  // Looks at everything there is: opens every plugin that may be opened, and reads its devices again.
  void scan();

  // What has been looked at so far. Places are listed by the first find or scan.
  std::vector<CandidateReport> report() const;

  // Picks a device. null or "auto": the first of cuda, vulkan, cpu that has one; a software GPU only when there is
  // nothing else; `ref` and other backends never. "cpu", "vulkan:1": that one, or the reason why not.
  Status choose(const char* spec, Choice* out);

 private:
  LoaderServices services() const;
  Status list_places();
  Status list_directory_of(const SearchDirectory& directory, std::vector<std::unique_ptr<Candidate>>* out) const;
  Candidate* first_of(std::string_view name) const;
  Status missing(std::string_view name) const;
  Status find_candidate(std::string_view name, Candidate** out);
  Status load_candidate(const std::string& path, const PluginName& name, Candidate** out);

  Status choose_named(std::string_view spec, Choice* out);
  Status choose_automatically(Choice* out);

  const LoaderOptions options_;
  const std::string own_directory_;  // of the library; plugins below it are as trusted as the library
  const std::string environment_;    // KVASIR_BACKEND_PATH at creation
  kvb_host host_;

  mutable std::mutex mutex_;
  bool listed_ = false;
  std::vector<std::unique_ptr<Candidate>> candidates_;  // in search order
};

}  // namespace kvasir
