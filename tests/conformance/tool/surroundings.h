// SPDX-License-Identifier: MIT
//
// What a backend must leave alone in the process that it runs in: the thread's floating-point control state, the locale,
// the signal handlers, standard output and error.
#pragma once

#include <array>
#include <cfenv>
#include <csignal>
#include <cstdint>
#include <string>

namespace kvasir::conformance {

class Surroundings {
 public:
  Surroundings();  // as they are now
  // A sentence about what has changed since, or "". Sets the floating-point state back.
  std::string changes() const;

 private:
  std::fenv_t environment_;
  uint64_t control_;
  std::string locale_;
  std::array<void (*)(int), 65> handlers_;
};

// Takes the process's standard output and error, and tells what was written there.
class Capture {
 public:
  explicit Capture(int file) : file_(file) {}  // open for reading and writing

  void take_standard_streams() const;
  // What was written since the last call, made printable and cut; "" for nothing.
  std::string taken() const;

 private:
  int file_;
};

}  // namespace kvasir::conformance
