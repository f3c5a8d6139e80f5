// SPDX-License-Identifier: MIT
//
// For tests that run as root, whom no permission stops: somebody else for a while.
#pragma once

#include <unistd.h>

namespace kvasir::test {

class OtherUser {
 public:
  OtherUser() : was_root_(geteuid() == 0), active_(!was_root_ || seteuid(kSomebody) == 0) {}
  ~OtherUser() {
    if (was_root_ && active_ && seteuid(0) != 0) _exit(99);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

  // Whether permissions count now.
  bool active() const { return active_; }
  const char* reason() const { return "nobody else can be, or may read the build tree, here"; }

 private:
  static constexpr uid_t kSomebody = 65534;
  const bool was_root_;
  const bool active_;
};

}  // namespace kvasir::test
