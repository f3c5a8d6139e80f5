// SPDX-License-Identifier: MIT
#include "loader/search.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "kvasir/backend.h"
#include "loader/library.h"
#include "loader/trust.h"

namespace kvasir {
namespace {

constexpr std::string_view kPrefix = "libkvasir_backend_";
constexpr std::string_view kMajorMark = ".v";
constexpr std::string_view kSuffix = ".so";
constexpr size_t kLongestName = 32;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Status judge_name(std::string_view file_name, std::string_view backend, std::string_view major) {
  const int length = static_cast<int>(std::min<size_t>(file_name.size(), 250));
  const char* text = file_name.data();
  KV_CHECK(valid_backend_name(backend), KV_INVALID_ARGUMENT, "'%.*s' carries no valid backend name", length, text);
  unsigned number = 0;
  const auto parsed = std::from_chars(major.data(), major.data() + major.size(), number);
  KV_CHECK(parsed.ec == std::errc() && parsed.ptr == major.data() + major.size(), KV_INVALID_ARGUMENT,
           "'%.*s' does not end in .v<ABI major>.so", length, text);
  KV_CHECK(number == KVB_ABI_MAJOR, KV_INCOMPATIBLE, "'%.*s' is for backend ABI %u, this library has %u", length, text,
           number, static_cast<unsigned>(KVB_ABI_MAJOR));
  return {};
}

// A place is itself whatever it is called; what does not exist, or must not be looked up, is known by its spelling.
std::string identity_of(const std::string& path) {
  std::string resolved;
  return path.starts_with('/') && resolve_path(path, &resolved).ok() ? resolved : path;
}

}  // namespace

const char* origin_text(Origin origin) {
  switch (origin) {
    case Origin::kFile: return "file named by the application";
    case Origin::kDirectory: return "directory named by the application";
    case Origin::kEnvironment: return "KVASIR_BACKEND_PATH";
    case Origin::kBuiltIn: return "part of the library";
    case Origin::kBesideLibrary: return "beside the library";
    case Origin::kCompiledIn: return "compiled-in directory";
  }
  return "unknown";
}

bool valid_backend_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !is_lower(name[0]) || name == "auto") return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

std::string plugin_file_name(std::string_view backend_name) {
  std::string file_name(kPrefix);
  file_name += backend_name;
  file_name += kMajorMark;
  file_name += std::to_string(KVB_ABI_MAJOR);
  file_name += kSuffix;
  return file_name;
}

PluginName parse_plugin_name(std::string_view file_name) {
  PluginName result;
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kSuffix)) return result;
  if (file_name.size() < kPrefix.size() + kSuffix.size()) return result;
  result.plugin_like = true;
  const std::string_view middle = file_name.substr(kPrefix.size(), file_name.size() - kPrefix.size() - kSuffix.size());
  const size_t mark = middle.rfind(kMajorMark);
  const std::string_view backend = middle.substr(0, mark);
  const std::string_view major = mark == std::string_view::npos ? "" : middle.substr(mark + kMajorMark.size());
  if (valid_backend_name(backend)) result.name = backend;
  result.status = judge_name(file_name, backend, major);
  return result;
}

std::string own_directory() {
  std::string file;
  if (!resolve_path(file_of_address(kPrefix.data()), &file).ok()) return {};
  return std::filesystem::path(file).parent_path().string();
}

std::string environment_path() {
  const char* value = secure_getenv("KVASIR_BACKEND_PATH");
  return value != nullptr ? value : "";
}

std::vector<SearchDirectory> search_directories(const std::vector<std::string>& application_directories,
                                                std::string_view environment, std::string_view own_directory) {
  std::vector<SearchDirectory> all;
  for (const std::string& path : application_directories) all.push_back({path, Origin::kDirectory});
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find(':'));
    if (!entry.empty()) all.push_back({std::string(entry), Origin::kEnvironment});
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
  }
  if (!own_directory.empty()) all.push_back({std::string(own_directory) + "/kvasir/backends", Origin::kBesideLibrary});
  all.push_back({KVASIR_BACKEND_DIR, Origin::kCompiledIn});

  std::vector<SearchDirectory> result;
  std::vector<std::string> seen;
  for (SearchDirectory& directory : all) {
    std::string identity = identity_of(directory.path);
    if (std::find(seen.begin(), seen.end(), identity) != seen.end()) continue;
    seen.push_back(std::move(identity));
    result.push_back(std::move(directory));
  }
  return result;
}

Status list_directory(const std::string& path, std::vector<std::string>* out) {
  KV_CHECK(path.starts_with('/'), KV_INVALID_ARGUMENT,
           "'%.250s' is not an absolute path; plugins are never looked for relative to the current directory",
           path.c_str());
  // Not std::filesystem: its iterator ends the process when there is no memory for an entry.
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  std::vector<std::string> names;
  int failure = directory != nullptr ? 0 : errno;
  while (failure == 0) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    failure = errno;
    if (entry == nullptr) break;
    if (parse_plugin_name(entry->d_name).plugin_like) names.emplace_back(entry->d_name);
  }
  if (failure != 0) {
    kv_status status = KV_IO;
    if (failure == ENOENT || failure == ENOTDIR) status = KV_NOT_FOUND;
    if (is_shortage(failure)) status = KV_OUT_OF_MEMORY;
    return Status::error(status, "directory '%.250s' cannot be read: %s", path.c_str(),
                         std::generic_category().message(failure).c_str());
  }
  std::sort(names.begin(), names.end());
  *out = std::move(names);
  return {};
}

}  // namespace kvasir
