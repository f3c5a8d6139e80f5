// SPDX-License-Identifier: MIT
//
// Where plugins are looked for, in which order, and what their file names say. Lists directories; opens no plugin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kvasir {

// Why a place was looked at. In search order; values appear in reports and are never renumbered.
enum class Origin : uint32_t {
  kFile = 1,           // a file the application named
  kDirectory = 2,      // a directory the application named
  kEnvironment = 3,    // KVASIR_BACKEND_PATH
  kBuiltIn = 4,        // part of the library itself
  kBesideLibrary = 5,  // <directory of libkvasir>/kvasir/backends
  kCompiledIn = 6,     // the directory fixed when the library was built
};
const char* origin_text(Origin origin);

struct SearchDirectory {
  std::string path;
  Origin origin;
};

// What a file name says: libkvasir_backend_<name>.v<major>.so.
struct PluginName {
  std::string name;
  bool plugin_like = false;  // starts like a plugin; anything else is no concern of the loader
  Status status;             // ok: a plugin of this ABI major; otherwise the reason it is not opened
};
PluginName parse_plugin_name(std::string_view file_name);
std::string plugin_file_name(std::string_view backend_name);
// Lower-case letters, digits and '_', at most 32, starting with a letter, and not the word "auto".
bool valid_backend_name(std::string_view name);

// Directory of the library (or executable) that contains this code, links resolved; "" when it cannot be told.
std::string own_directory();
// The value of KVASIR_BACKEND_PATH, or "" when it is unset or the process runs with elevated privileges.
std::string environment_path();

// In search order, without repeats. Entries that are not absolute stay in the list; list_directory refuses them.
std::vector<SearchDirectory> search_directories(const std::vector<std::string>& application_directories,
                                                std::string_view environment, std::string_view own_directory);

// Names of the files that look like plugins, sorted by byte value. A failure says why there are none.
Status list_directory(const std::string& path, std::vector<std::string>* out);

}  // namespace kvasir
