// SPDX-License-Identifier: MIT
//
// A directory with a good plugin in it, and a scan of it that asserts what becomes of the one beside.
#pragma once

#include "support.h"

namespace kvasir::test {

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() : place_(scratch_.directory("place")) { good_ = put("good", place_); }

  // A scan of `place_`, in which `path` comes out with that status and reason, and the good plugin beside it works.
  CandidateReport scanned(const std::string& path, kv_status status, const std::string& reason) {
    Registry registry(only({place_}), host_.services());
    registry.scan();
    const auto report = registry.report();
    const CandidateReport* good = reported(report, good_);
    EXPECT_TRUE(good != nullptr && good->status == KV_OK && good->devices.size() == 1);
    const CandidateReport* found = reported(report, path);
    EXPECT_NE(found, nullptr) << path;
    if (found == nullptr) return {};
    EXPECT_EQ(found->status, status) << found->reason;
    EXPECT_NE(found->reason.find(reason), std::string::npos) << found->reason << "\nexpected: " << reason;
    if (status != KV_OK && !found->name.empty()) {
      Choice choice;
      EXPECT_FALSE(registry.choose(found->name.c_str(), &choice).ok());
      EXPECT_EQ(choice.backend, nullptr);
    }
    return *found;
  }

  Scratch scratch_;
  Host host_;
  const std::string place_;
  std::string good_;
};

}  // namespace kvasir::test
