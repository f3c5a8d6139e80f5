// SPDX-License-Identifier: MIT
//
// A bar on standard error for calls that take long, only when that is a terminal.
#pragma once

#include <chrono>
#include <string>

#include "kvasir/kvasir.h"

namespace kvasir::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The callback for the library (NULL where no bar would be seen), and its user pointer.
  kv_progress_fn callback() const;
  void* user() { return this; }
  void clear();

 private:
  static void report(void* user, uint64_t done, uint64_t total);
  void draw(uint64_t done, uint64_t total);

  std::string what_;
  std::chrono::steady_clock::time_point started_;
  int percent_ = -1;
  bool drawn_ = false;
};

}  // namespace kvasir::cli
