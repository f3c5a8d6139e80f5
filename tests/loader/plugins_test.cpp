// SPDX-License-Identifier: MIT
//
// Real files on disk, one wrong in one point each: what the report says of it, and that the good one beside it loads.
#include <cfenv>
#include <limits>

#include "place.h"

namespace kvasir::test {
namespace {

class Plugins : public PlaceTest {};

TEST_F(Plugins, AGoodOne) {
  const CandidateReport report = scanned(good_, KV_OK, "");
  EXPECT_EQ(report.name, "good");
  EXPECT_EQ(report.version, "1.2.3");
  EXPECT_EQ(report.origin, Origin::kDirectory);
  EXPECT_TRUE(report.opened);
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].name, "stub device 0");
  EXPECT_EQ(report.devices[0].driver, "stub 1.0");
  EXPECT_EQ(report.devices[0].kind, static_cast<uint32_t>(KVB_DEVICE_CPU));
  EXPECT_EQ(report.devices[0].memory_total, 1000u);
  EXPECT_EQ(report.devices[0].memory_available, 500u);
  EXPECT_TRUE(report.devices[0].fault.empty());
}

TEST_F(Plugins, AnotherMajorInTheNameIsNeverOpened) {
  const std::string path = put("good", place_, "libkvasir_backend_newer.v1.so");
  EXPECT_FALSE(scanned(path, KV_INCOMPATIBLE, "is for backend ABI 1, this library has 0").opened);
}

TEST_F(Plugins, ALinkToAnotherMajorIsNeverOpened) {
  const std::string elsewhere = scratch_.directory("elsewhere");
  const std::string target = put("other", elsewhere, "libkvasir_backend_other.v1.so");
  const std::string path = place_ + "/" + file_of("other");
  std::filesystem::create_symlink(target, path);
  EXPECT_FALSE(scanned(path, KV_INCOMPATIBLE, "leads to another ABI").opened);
}

TEST_F(Plugins, AnotherMajorOrDraftInTheTable) {
  EXPECT_TRUE(scanned(put("wrong_major", place_), KV_INCOMPATIBLE, "it was built for backend ABI 7 draft 0").opened);
  scanned(put("wrong_draft", place_), KV_INCOMPATIBLE, "this library has 0 draft");
}

TEST_F(Plugins, ATableOfAnotherSize) {
  scanned(put("small_table", place_), KV_INCOMPATIBLE, "its table has");
  EXPECT_EQ(scanned(put("big_table", place_), KV_OK, "").devices.size(), 1u);
}

TEST_F(Plugins, AHoleInTheTable) { scanned(put("hole", place_), KV_INCOMPATIBLE, "mandatory function queue_wait"); }

TEST_F(Plugins, NoVersion) { scanned(put("no_version", place_), KV_INCOMPATIBLE, "has no version"); }

TEST_F(Plugins, AnotherNameThanItsFile) {
  const std::string path = put("good", place_, file_of("best"));
  scanned(path, KV_INCOMPATIBLE, "it calls itself 'good', its file name says 'best'");
}

TEST_F(Plugins, NoEntryEvenWhenALibraryItLinksHasOne) {
  const std::string path = put("no_entry", place_);
  scanned(path, KV_INCOMPATIBLE, "'" + path + "' is not a plugin: it has no symbol kv_backend_query_v0");
}

TEST_F(Plugins, OneThatDeclines) {
  scanned(put("declines", place_), KV_UNSUPPORTED, "this processor is too old");
  scanned(put("declines_silently", place_), KV_INCOMPATIBLE, "gave no reason");
}

TEST_F(Plugins, AMissingDependencyIsNamed) {
  const CandidateReport report = scanned(put("missing_dependency", place_), KV_IO, "libkvasir_test_absent.so");
  EXPECT_FALSE(report.opened);
  Registry registry(only({place_}), host_.services());
  Choice choice;
  const Status status = registry.choose("missing_dependency", &choice);
  EXPECT_TRUE(fails_with(status, KV_IO, "libkvasir_test_absent.so: cannot open shared object file"));
}

TEST_F(Plugins, WhatIsNoLibrary) {
  const std::string text = put_text(place_ + "/" + file_of("text"));
  scanned(text, KV_IO, "'" + text + "' cannot be loaded: " + text + ": ");
  scanned(put_text(place_ + "/" + file_of("empty"), ""), KV_IO, "cannot be loaded");
  const std::string cut = put("other", place_);
  std::filesystem::resize_file(cut, 200);
  scanned(cut, KV_CORRUPT, "'" + cut + "' is cut short or damaged: its list of s");
}

TEST_F(Plugins, WhatIsNoFile) {
  const std::string directory = place_ + "/" + file_of("directory");
  std::filesystem::create_directory(directory);
  scanned(directory, KV_INVALID_ARGUMENT, "is not a regular file");
  const std::string pipe = place_ + "/" + file_of("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  scanned(pipe, KV_INVALID_ARGUMENT, "is not a regular file");
  const std::string dangling = place_ + "/" + file_of("dangling");
  std::filesystem::create_symlink(place_ + "/none", dangling);
  scanned(dangling, KV_NOT_FOUND, "cannot find '" + dangling + "'");
}

TEST_F(Plugins, AWorldWritableFile) {
  const std::string path = put("other", place_);
  Scratch::set_mode(path, 0666);
  EXPECT_FALSE(scanned(path, KV_DENIED, "'" + path + "' is not trusted: everybody may write to it").opened);
}

TEST_F(Plugins, ALinkIntoAWorldWritableDirectory) {
  const std::string open = scratch_.directory("open");
  const std::string target = put("other", open);
  Scratch::set_mode(open, 01777);
  const std::string path = place_ + "/" + file_of("other");
  std::filesystem::create_symlink(target, path);
  EXPECT_FALSE(scanned(path, KV_DENIED, "'" + open + "' is not trusted").opened);
}

TEST_F(Plugins, AForeignOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string path = put("other", place_);
  ASSERT_EQ(chown(path.c_str(), 54321, 54321), 0);
  scanned(path, KV_DENIED, "it belongs to user 54321");
}

TEST_F(Plugins, UntrustedPathsOnRequestWithAWarningEach) {
  Scratch::set_mode(place_, 0777);
  const std::string path = put("other", place_);
  Scratch::set_mode(path, 0666);
  LoaderOptions options = only({place_});
  options.allow_untrusted_paths = true;
  Registry registry(options, host_.services());
  const Backend* backend = nullptr;
  EXPECT_TRUE(registry.find("other", &backend).ok());
  EXPECT_TRUE(registry.find("good", &backend).ok());
  EXPECT_EQ(host_.logged(KV_LOG_WARNING, "is opened because untrusted paths are allowed"), 2u);
  EXPECT_EQ(host_.logged(KV_LOG_WARNING, "plugin " + path + " is opened because"), 1u);
}

TEST_F(Plugins, AGroupWritablePathIsUsedWithAWarning) {
  Scratch::set_mode(place_, 0775);
  Registry registry(only({place_}), host_.services());
  const Backend* backend = nullptr;
  EXPECT_TRUE(registry.find("good", &backend).ok());
  EXPECT_EQ(host_.logged(KV_LOG_WARNING, "'" + place_ + "' may be written by its group"), 1u);
}

TEST_F(Plugins, ANoisyConstructorDisturbsNobody) {
  const std::string path = put("noisy", place_);
  volatile double tiny = std::numeric_limits<double>::min();
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  std::fesetround(FE_UPWARD);
  const CandidateReport report = scanned(path, KV_OK, "");
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "noisy plugin: hello again\n") << "its words and no others";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "noisy plugin: hello\n");
  EXPECT_EQ(rounding, FE_UPWARD);
  EXPECT_EQ(report.devices.size(), 1u);
  EXPECT_GT(tiny / 2, 0.0) << "the constructor switched denormals off in this thread";
}

TEST_F(Plugins, PathsWithSpacesAndOtherAlphabets) {
  const std::string name = "spa ce \xC3\xA4\xE6\x97\xA5 %s";
  const std::string odd = scratch_.directory(name);
  const std::string path = put("other", odd);
  const std::string link = scratch_.root() + "/a link";
  std::filesystem::create_directory_symlink(odd, link);
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");
  Registry direct(only({odd}), host_.services());
  Registry through_link(only({link}), host_.services());
  const Backend* backend = nullptr;
  EXPECT_TRUE(direct.find("other", &backend).ok());
  EXPECT_TRUE(through_link.find("other", &backend).ok());
  std::filesystem::current_path(here);
  EXPECT_EQ(backend->path, path);
  EXPECT_NE(reported(through_link.report(), link + "/" + file_of("other")), nullptr);
}

}  // namespace
}  // namespace kvasir::test
