// SPDX-License-Identifier: MIT
#include "loader/registry.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <new>
#include <utility>

#include "loader/candidate.h"
#include "loader/trust.h"

namespace kvasir {
namespace {

using Candidates = std::vector<std::unique_ptr<Candidate>>;

kvb_host completed(kvb_host host) {
  host.struct_size = sizeof host;
  host.abi_version = KVB_ABI_VERSION;
  return host;
}

}  // namespace

Registry::Registry(LoaderOptions options, const kvb_host& host)
    : options_(std::move(options)),
      own_directory_(kvasir::own_directory()),
      environment_(options_.ignore_environment || options_.no_search ? std::string() : environment_path()),
      host_(completed(host)) {}

Registry::~Registry() = default;

LoaderServices Registry::services() const {
  return {host_, {host_.log, host_.log_user}, own_directory_, options_.allow_untrusted_paths};
}

Status Registry::find(std::string_view name, const Backend** out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Candidate* candidate = nullptr;
  KV_RETURN_IF_ERROR(find_candidate(name, &candidate));
  *out = &candidate->backend();
  return {};
}

Status Registry::load(const std::string& path, const Backend** out) {
  KV_CHECK(path.starts_with('/'), KV_INVALID_ARGUMENT, "'%.250s' is not an absolute path", path.c_str());
  const PluginName name = parse_plugin_name(std::filesystem::path(path).filename().string());
  KV_CHECK(name.plugin_like, KV_INVALID_ARGUMENT, "'%.250s' is not called libkvasir_backend_<name>.v%u.so",
           path.c_str(), static_cast<unsigned>(KVB_ABI_MAJOR));
  const std::lock_guard<std::mutex> lock(mutex_);
  Candidate* candidate = nullptr;
  KV_RETURN_IF_ERROR(load_candidate(path, name, &candidate));
  if (out != nullptr) *out = &candidate->backend();
  return {};
}

Status Registry::load_candidate(const std::string& path, const PluginName& name, Candidate** out) {
  Candidate* serving = name.status.ok() ? first_of(name.name) : nullptr;
  if (serving != nullptr && serving->taken()) {
    std::string real_path;
    KV_RETURN_IF_ERROR(resolve_path(path, &real_path));
    const Backend& backend = serving->backend();
    KV_CHECK(real_path == backend.path, KV_INVALID_ARGUMENT, "'%.200s' comes too late: '%s' is served by '%.200s'",
             path.c_str(), name.name.c_str(),
             backend.path.empty() ? origin_text(Origin::kBuiltIn) : backend.path.c_str());
    KV_RETURN_IF_ERROR(serving->use(services()));
    *out = serving;
    return {};
  }
  // An earlier failure with this file gives way to the new attempt.
  const auto same = [&](const std::unique_ptr<Candidate>& other) {
    return other->report().origin == Origin::kFile && other->report().path == path && !other->taken();
  };
  std::unique_ptr<Candidate> candidate = Candidate::file(path, Origin::kFile, name);
  candidates_.reserve(candidates_.size() + 1);
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), same), candidates_.end());
  candidates_.insert(candidates_.begin(), std::move(candidate));
  KV_CHECK(name.status.ok(), name.status.code(), "%s", name.status.message());
  KV_RETURN_IF_ERROR(candidates_.front()->use(services()));
  *out = candidates_.front().get();
  return {};
}

void Registry::scan() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!list_places().ok()) throw std::bad_alloc();
  for (const auto& candidate : candidates_) {
    if (!candidate->eligible() || first_of(candidate->report().name) != candidate.get()) continue;
    // What fails is in the report, which is what a scan is for.
    if (candidate->use(services()).ok()) static_cast<void>(candidate->read_devices());
  }
}

std::vector<CandidateReport> Registry::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CandidateReport> result;
  for (const auto& candidate : candidates_) {
    result.push_back(candidate->report());
    if (!candidate->eligible() || candidate->refused()) continue;
    const Candidate* first = first_of(candidate->report().name);
    if (first == candidate.get()) continue;
    const CandidateReport& serving = first->report();
    result.back().status = KV_UNSUPPORTED;
    result.back().reason = "not used: '" + serving.name + "' was found before, " +
                           (serving.path.empty() ? origin_text(serving.origin) : "as '" + serving.path + "'");
  }
  return result;
}

// Names of files only; nothing is opened. Built-in backends rank where the library itself does. Fails only for a
// shortage (KV_OUT_OF_MEMORY), and then lists anew the next time.
Status Registry::list_places() {
  if (listed_) return {};
  Candidates found;
  bool built_in_listed = false;
  const auto list_built_in = [&] {
    if (std::exchange(built_in_listed, true)) return;
    for (const StaticBackend& entry : options_.built_in) found.push_back(Candidate::built_in(entry));
  };
  for (const SearchDirectory& place : search_directories(options_.directories, environment_, own_directory_)) {
    if (options_.no_search && place.origin != Origin::kDirectory) continue;
    if (place.origin > Origin::kBuiltIn) list_built_in();
    KV_RETURN_IF_ERROR(list_directory_of(place, &found));
  }
  list_built_in();
  candidates_.reserve(candidates_.size() + found.size());
  std::move(found.begin(), found.end(), std::back_inserter(candidates_));
  listed_ = true;
  return {};
}

Status Registry::list_directory_of(const SearchDirectory& place, Candidates* out) const {
  std::vector<std::string> files;
  Status status = list_directory(place.path, &files);
  if (status.code() == KV_OUT_OF_MEMORY) return status;
  if (status.ok() && files.empty())
    status = Status::error(KV_NOT_FOUND, "'%.250s' holds no plugin", place.path.c_str());
  out->push_back(Candidate::directory(place, status));
  for (const std::string& file : files)
    out->push_back(Candidate::file(place.path + "/" + file, place.origin, parse_plugin_name(file)));
  return {};
}

// A file the application named and that failed was its own answer; it does not stand in the way of a later search.
Candidate* Registry::first_of(std::string_view name) const {
  for (const auto& candidate : candidates_) {
    if (!candidate->eligible() || candidate->report().name != name) continue;
    if (candidate->refused() && candidate->report().origin == Origin::kFile) continue;
    return candidate.get();
  }
  return nullptr;
}

Status Registry::find_candidate(std::string_view name, Candidate** out) {
  KV_CHECK(valid_backend_name(name), KV_INVALID_ARGUMENT,
           "'%.*s' is not the name of a backend (lower-case letters, digits and '_', at most 32)",
           static_cast<int>(std::min<size_t>(name.size(), 64)), name.data());
  KV_RETURN_IF_ERROR(list_places());
  Candidate* candidate = first_of(name);
  if (candidate == nullptr) return missing(name);
  KV_RETURN_IF_ERROR(candidate->use(services()));
  *out = candidate;
  return {};
}

// The reason why there is no such backend: the places, and files of that name which are no candidates.
Status Registry::missing(std::string_view name) const {
  std::string places;
  std::string others;
  for (const auto& candidate : candidates_) {
    const CandidateReport& report = candidate->report();
    if (report.name == name) others += "; " + report.reason;
    if (!report.directory) continue;
    if (report.status == KV_OK || report.status == KV_NOT_FOUND) {
      places += (places.empty() ? "'" : ", '") + report.path + "'";
    } else {
      others += "; " + report.reason;
    }
  }
  return Status::error(KV_NOT_FOUND, "there is no backend '%.*s': no %s in %s%s", static_cast<int>(name.size()),
                       name.data(), plugin_file_name(name).c_str(), places.empty() ? "any directory" : places.c_str(),
                       others.c_str());
}

}  // namespace kvasir
