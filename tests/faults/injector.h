// SPDX-License-Identifier: MIT
//
// Makes the n-th allocation, thread start or file access of the calling thread fail, and counts blocks of memory. The
// functions of libc are interposed by the test program itself: its symbols win over libc's for libkvasir, the plugins
// and libstdc++ (operator new included, which is malloc there) as well. Off under sanitizers, which own malloc.
#pragma once

#include <cstdint>

namespace kvasir::test {

enum FaultKind : uint32_t { kMemory = 1, kThreads = 2, kFiles = 4 };

// False under sanitizers: then nothing fails and nothing is counted.
bool can_inject();

// While it lives, the calls of the given kinds that this thread makes inside failing() are counted, and the n-th (from
// 1) fails; with `persistent` all after it too. n = 0: none. One at a time for each thread.
class Faults {
 public:
  Faults(uint32_t kinds, uint64_t n, bool persistent);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  uint64_t seen() const;  // calls counted so far
  bool fired() const;     // one of them has failed
};

// The only place where something fails, so that the test's own allocations do not.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};
template <class F>
auto failing(F&& call) {
  const Armed armed;
  return call();
}

// Inside failing(): a callback's own allocations do not fail.
class Disarmed {
 public:
  Disarmed();
  ~Disarmed();
  Disarmed(const Disarmed&) = delete;
  Disarmed& operator=(const Disarmed&) = delete;

 private:
  bool before_;
};

// Blocks of memory the whole process holds.
int64_t live_blocks();

}  // namespace kvasir::test
