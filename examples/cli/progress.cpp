// SPDX-License-Identifier: MIT
//
// Draws at most once per percent, and not at all in the first moments, so that short calls show nothing.
#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace kvasir::cli {

constexpr std::chrono::milliseconds kPatience(300);
constexpr int kBarWidth = 40;

Progress::Progress(std::string what) : what_(std::move(what)), started_(std::chrono::steady_clock::now()) {}

kv_progress_fn Progress::callback() const { return isatty(STDERR_FILENO) != 0 ? report : nullptr; }

void Progress::report(void* user, uint64_t done, uint64_t total) { static_cast<Progress*>(user)->draw(done, total); }

void Progress::draw(uint64_t done, uint64_t total) {
  if (total == 0 || std::chrono::steady_clock::now() - started_ < kPatience) return;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int percent = static_cast<int>(share * 100);
  if (percent == percent_) return;
  percent_ = percent;
  drawn_ = true;
  const auto filled = static_cast<size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(stderr, "\r%s [%s] %3d%%", what_.c_str(), bar.c_str(), percent);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace kvasir::cli
