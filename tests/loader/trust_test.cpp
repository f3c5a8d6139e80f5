// SPDX-License-Identifier: MIT
//
// Who may have put a file where it lies. The scratch folder counts as beside the library where a test says so; how the
// machine's own directories are judged is asked for paths that are the same everywhere.
#include "loader/trust.h"

#include "support.h"

namespace kvasir::test {
namespace {

constexpr uid_t kSomebody = 54321;

class Trust : public ::testing::Test {
 protected:
  Trust() : place_(scratch_.directory("place")), file_(put_text(place_ + "/file")) {}

  // As trusted as the library, which lies in the scratch folder.
  Status judge() { return check_trust(file_, scratch_.root(), &warning_); }

  Scratch scratch_;
  const std::string place_;
  const std::string file_;
  std::string warning_ = "untouched";
};

TEST_F(Trust, AnOrdinaryFile) {
  EXPECT_TRUE(judge().ok()) << judge().message();
  EXPECT_EQ(warning_, "untouched");
}

TEST_F(Trust, AWorldWritableFile) {
  Scratch::set_mode(file_, 0646);
  EXPECT_TRUE(fails_with(judge(), KV_DENIED, "'" + file_ + "' is not trusted: everybody may write to it (mode 0646)"));
}

TEST_F(Trust, AWorldWritableDirectoryStickyOrNot) {
  Scratch::set_mode(place_, 0757);
  EXPECT_TRUE(fails_with(judge(), KV_DENIED, "'" + place_ + "' is not trusted: everybody may write to it (mode 0757)"));
  Scratch::set_mode(place_, 01777);
  EXPECT_TRUE(fails_with(judge(), KV_DENIED, "'" + place_ + "' is not trusted: everybody may write to it (mode 1777)"));
}

TEST_F(Trust, AGroupWritableElementIsAWarning) {
  Scratch::set_mode(place_, 0775);
  EXPECT_TRUE(judge().ok());
  EXPECT_EQ(warning_, "'" + place_ + "' may be written by its group");
}

TEST_F(Trust, AForeignOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(file_.c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(fails_with(judge(), KV_DENIED, "'" + file_ + "' is not trusted: it belongs to user 54321"));
  ASSERT_EQ(chown(file_.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(place_.c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(fails_with(judge(), KV_DENIED, "'" + place_ + "' is not trusted: it belongs to user 54321"));
}

TEST_F(Trust, TheOwnerOfTheLibraryMayOwnWhatLiesBesideItAndNothingElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(scratch_.root().c_str(), kSomebody, kSomebody), 0);
  ASSERT_EQ(chown(file_.c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(judge().ok());
  EXPECT_EQ(check_trust(file_, "", &warning_).code(), KV_DENIED);
  EXPECT_EQ(check_trust(file_, "/usr/lib", &warning_).code(), KV_DENIED);
}

TEST_F(Trust, WhereEverybodyMayReplaceTheLibraryNothingIsLost) {
  Scratch::set_mode(scratch_.root(), 0777);
  Scratch::set_mode(place_, 0777);
  Scratch::set_mode(file_, 0777);
  EXPECT_TRUE(judge().ok());
  Scratch::set_mode(scratch_.root(), 01777);  // nobody may replace the library here, but anybody may add `place`
  EXPECT_EQ(judge().code(), KV_DENIED);
}

TEST_F(Trust, ElementsAboveTheLibraryAreNotJudgedAndOthersAre) {
  Scratch::set_mode(scratch_.root(), 01777);
  EXPECT_TRUE(judge().ok());
  const std::string beside = scratch_.root() + "/pla";  // a prefix of the text, not of the path
  EXPECT_EQ(check_trust(file_, beside, &warning_).code(), KV_DENIED);
  EXPECT_EQ(check_trust(file_, "", &warning_).code(), KV_DENIED);
}

TEST_F(Trust, WhatIsNoRegularFile) {
  EXPECT_TRUE(fails_with(check_trust(place_, "", &warning_), KV_INVALID_ARGUMENT, "is not a regular file"));
  EXPECT_TRUE(fails_with(check_trust("/dev/null", "", &warning_), KV_INVALID_ARGUMENT, "is not a regular file"));
  const std::string pipe = place_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  EXPECT_TRUE(fails_with(check_trust(pipe, "", &warning_), KV_INVALID_ARGUMENT, "is not a regular file"));
  EXPECT_EQ(check_trust(place_ + "/none", "", &warning_).code(), KV_NOT_FOUND);
}

TEST(SystemTrust, WhatRootInstalledIsTrusted) {
  std::string path;
  std::string warning;
  ASSERT_TRUE(resolve_path("/etc/passwd", &path).ok());
  struct stat facts;
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  if (facts.st_uid != 0) GTEST_SKIP() << "here /etc/passwd does not belong to root";
  EXPECT_TRUE(check_trust(path, "", &warning).ok()) << check_trust(path, "", &warning).message();
}

TEST(SystemTrust, WhatLiesInTheTemporaryDirectoryIsNot) {
  struct stat facts;
  if (stat("/tmp", &facts) != 0 || (facts.st_mode & S_IWOTH) == 0) GTEST_SKIP() << "here /tmp is not open to everybody";
  std::string directory = "/tmp/kvasir-trust-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string file = put_text(directory + "/file");
  std::string path;
  std::string warning;
  ASSERT_TRUE(resolve_path(file, &path).ok());
  const Status status = check_trust(path, "", &warning);
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(fails_with(status, KV_DENIED, "everybody may write to it"));
}

TEST(ResolvePath, FollowsLinks) {
  Scratch scratch;
  const std::string target = put_text(scratch.root() + "/target");
  const std::string link = scratch.root() + "/link";
  std::filesystem::create_symlink("target", link);
  std::string path = "untouched";
  EXPECT_TRUE(resolve_path(link, &path).ok());
  EXPECT_EQ(path, target);
  std::filesystem::remove(target);
  EXPECT_TRUE(fails_with(resolve_path(link, &path), KV_NOT_FOUND, link));
  std::filesystem::create_symlink("loop", scratch.root() + "/loop");
  EXPECT_EQ(resolve_path(scratch.root() + "/loop", &path).code(), KV_IO);
  EXPECT_EQ(path, target);
}

}  // namespace
}  // namespace kvasir::test
