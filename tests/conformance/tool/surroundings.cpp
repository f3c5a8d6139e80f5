// SPDX-License-Identifier: MIT
//
// Looking at the state of the process before and after a case.
#include "surroundings.h"

#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace kvasir::conformance {
namespace {

constexpr size_t kShown = 400;  // characters of captured output in a report

// Rounding mode, masks, and whether denormals are kept; not the exception flags, which the suite itself raises.
uint64_t floating_point_control() {
  uint64_t control = static_cast<uint64_t>(std::fegetround()) << 32;
#if defined(__x86_64__) || defined(__i386__)
  control |= _mm_getcsr() & ~0x3fu;
#else
  volatile float smallest = 1e-45f;
  volatile float product = smallest * 1.0f;
  control |= product != 0;
#endif
  return control;
}

void (*handler_of(int signal))(int) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 ? action.sa_handler : SIG_DFL;
}

std::string printable(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

}  // namespace

Surroundings::Surroundings() : control_(floating_point_control()), locale_(std::setlocale(LC_ALL, nullptr)) {
  std::fegetenv(&environment_);
  for (int signal = 1; signal <= 64; ++signal) handlers_[static_cast<size_t>(signal)] = handler_of(signal);
}

std::string Surroundings::changes() const {
  const uint64_t control = floating_point_control();
  std::fesetenv(&environment_);
  if (control != control_) {
    char text[96];
    std::snprintf(text, sizeof text, "the floating-point control state is 0x%llx, it was 0x%llx",
                  static_cast<unsigned long long>(control), static_cast<unsigned long long>(control_));
    return text;
  }
  if (locale_ != std::setlocale(LC_ALL, nullptr)) {
    return std::string("the locale is '") + std::setlocale(LC_ALL, nullptr) + "', it was '" + locale_ + "'";
  }
  for (int signal = 1; signal <= 64; ++signal) {
    if (handlers_[static_cast<size_t>(signal)] == handler_of(signal)) continue;
    return "the handler of signal " + std::to_string(signal) + " was changed";
  }
  return "";
}

void Capture::take_standard_streams() const {
  dup2(file_, STDOUT_FILENO);
  dup2(file_, STDERR_FILENO);
}

std::string Capture::taken() const {
  std::fflush(nullptr);
  std::string text(kShown, '\0');
  const ssize_t length = pread(file_, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  if (!text.empty() && ftruncate(file_, 0) == 0) lseek(file_, 0, SEEK_SET);
  return printable(text);
}

}  // namespace kvasir::conformance
