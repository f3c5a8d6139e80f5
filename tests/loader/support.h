// SPDX-License-Identifier: MIT
//
// What the loader's tests share: a scratch folder the loader trusts, plugins copied into it, and host services that
// collect log lines.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "loader/registry.h"

namespace kvasir::test {

// Beside the test program, so it is as trusted as the library, which is part of the program. Removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = own_directory() + "/loader-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", pattern, {});
    root_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& root() const { return root_; }

  // A new directory with mode 0755, whatever the umask is.
  std::string directory(const std::string& name) const {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_directory(path);
    set_mode(path, 0755);
    return path;
  }

  static void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0) << path; }

 private:
  std::string root_;
};

inline std::string file_of(const std::string& backend) { return "libkvasir_backend_" + backend + ".v0.so"; }

// Copies the plugin `backend` into `directory`, there called `file`; gives the path.
inline std::string put(const std::string& backend, const std::string& directory, std::string file = {}) {
  if (file.empty()) file = file_of(backend);
  const std::string path = directory + "/" + file;
  std::filesystem::copy_file(std::string(KV_TEST_PLUGINS) + "/" + file_of(backend), path);
  Scratch::set_mode(path, 0755);
  return path;
}

inline std::string put_text(const std::string& path, const std::string& text = "this is not a library\n") {
  std::ofstream(path) << text;
  Scratch::set_mode(path, 0644);
  return path;
}

// Host services without an executor; keeps what is logged.
class Host {
 public:
  Host() {
    services_.log = [](void* user, int32_t level, const char* text, size_t length) {
      Host* self = static_cast<Host*>(user);
      const std::lock_guard<std::mutex> lock(self->mutex_);
      self->lines_.push_back(std::to_string(level) + " " + std::string(text, length));
    };
    services_.log_user = this;
  }

  const kvb_host& services() const { return services_; }

  // How many lines of that level contain the text.
  size_t logged(int32_t level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (const std::string& line : lines_)
      count += line.starts_with(std::to_string(level) + " ") && line.find(text) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  kvb_host services_ = {};
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// Options under which nothing is found but what a test puts there.
inline LoaderOptions only(std::vector<std::string> directories, std::span<const StaticBackend> built_in = {}) {
  LoaderOptions options;
  options.directories = std::move(directories);
  options.no_search = true;
  options.built_in = built_in;
  return options;
}

inline const CandidateReport* reported(const std::vector<CandidateReport>& report, const std::string& path) {
  for (const CandidateReport& candidate : report)
    if (candidate.path == path) return &candidate;
  return nullptr;
}

inline ::testing::AssertionResult fails_with(const Status& status, kv_status code, const std::string& text) {
  if (status.code() == code && std::string(status.message()).find(text) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "status " << status.code() << ": " << status.message() << "; expected "
                                       << code << " with \"" << text << "\"";
}

}  // namespace kvasir::test
