// SPDX-License-Identifier: MIT
//
// One plugin or built-in backend on its way from a path to devices: judged, opened, negotiated with, instantiated, and
// what came of it. Which candidate serves a name is the registry's business. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "loader/registry.h"

namespace kvasir {

// What a candidate needs from its registry.
struct LoaderServices {
  const kvb_host& host;
  Log log;
  std::string_view library_directory;
  bool allow_untrusted_paths;
};

class Candidate {
 public:
  // A directory that was searched, and what came of it.
  static std::unique_ptr<Candidate> directory(const SearchDirectory& place, const Status& outcome);
  // A file that looks like a plugin; `name.status` may say that it is not one of this ABI.
  static std::unique_ptr<Candidate> file(const std::string& path, Origin origin, const PluginName& name);
  static std::unique_ptr<Candidate> built_in(const StaticBackend& entry);

  ~Candidate();
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // Takes it all the way to an instance. A refusal is final and repeated; a failing instance_create is tried again.
  Status use(const LoaderServices& services);
  // Of a candidate in use: reads its devices again. Having none is no failure, and explained in report().reason.
  Status read_devices();

  bool eligible() const { return eligible_; }  // may serve its name
  bool refused() const { return refused_; }
  bool taken() const { return backend_.api != nullptr; }  // opened and negotiated with
  bool in_use() const { return backend_.instance != nullptr; }
  const CandidateReport& report() const { return report_; }
  const Backend& backend() const { return backend_; }

 private:
  Candidate() = default;

  Status open(const LoaderServices& services);
  Status open_file(const LoaderServices& services, kvb_query_fn* out);
  Status judge(const LoaderServices& services, const std::string& real_path) const;
  Status instantiate(const kvb_host& host);
  Status describe(uint32_t count);
  Status failed(Status status, const Log& log);

  CandidateReport report_;
  Backend backend_;
  kvb_query_fn built_in_ = nullptr;
  bool eligible_ = false;
  bool refused_ = false;
};

}  // namespace kvasir
