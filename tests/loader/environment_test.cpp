// SPDX-License-Identifier: MIT
//
// KVASIR_BACKEND_PATH: read once, when a registry is made, and not at all with elevated privileges or when told so.
#include "support.h"

#include <cstdlib>

namespace kvasir::test {
namespace {

constexpr const char* kVariable = "KVASIR_BACKEND_PATH";

std::string output_of(const std::string& program) {
  FILE* pipe = popen(("'" + program + "'").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string text;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  return pclose(pipe) == 0 ? text : "failed: " + text;
}

class Environment : public ::testing::Test {
 protected:
  ~Environment() override { unsetenv(kVariable); }
  void set(const std::string& value) { ASSERT_EQ(setenv(kVariable, value.c_str(), 1), 0); }

  static LoaderOptions options() {
    LoaderOptions result;
    result.built_in = {};
    return result;
  }

  Scratch scratch_;
  Host host_;
};

TEST_F(Environment, NamesDirectoriesInOrder) {
  const std::string first = scratch_.directory("first");
  const std::string second = scratch_.directory("second");
  put("good", second);
  put("other", first);
  set(first + "::" + second + ":");
  Registry registry(options(), host_.services());
  const Backend* backend = nullptr;
  ASSERT_TRUE(registry.find("good", &backend).ok());
  EXPECT_EQ(backend->path, second + "/" + file_of("good"));
  const auto report = registry.report();
  ASSERT_GE(report.size(), 4u);
  EXPECT_EQ(report[0].path, first);
  EXPECT_EQ(report[2].path, second);
  EXPECT_EQ(report[3].origin, Origin::kEnvironment);
}

TEST_F(Environment, IsReadWhenTheRegistryIsMade) {
  const std::string place = scratch_.directory("place");
  put("good", place);
  Registry before(options(), host_.services());
  set(place);
  Registry after(options(), host_.services());
  unsetenv(kVariable);
  const Backend* backend = nullptr;
  EXPECT_EQ(before.find("good", &backend).code(), KV_NOT_FOUND);
  EXPECT_TRUE(after.find("good", &backend).ok());
}

TEST_F(Environment, CanBeIgnored) {
  const std::string place = scratch_.directory("place");
  put("good", place);
  set(place);
  LoaderOptions ignoring = options();
  ignoring.ignore_environment = true;
  Registry registry(ignoring, host_.services());
  const Backend* backend = nullptr;
  EXPECT_EQ(registry.find("good", &backend).code(), KV_NOT_FOUND);
  EXPECT_EQ(reported(registry.report(), place), nullptr);
}

TEST_F(Environment, RelativeEntriesAreRefusedAndReported) {
  const std::string place = scratch_.directory("place");
  put("good", place);
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(scratch_.root());
  set("place:.:./place");
  Registry registry(options(), host_.services());
  const Backend* backend = nullptr;
  const Status status = registry.find("good", &backend);
  std::filesystem::current_path(here);
  EXPECT_TRUE(fails_with(status, KV_NOT_FOUND, "'place' is not an absolute path"));
  for (const char* entry : {"place", ".", "./place"}) {
    const auto report = registry.report();
    const CandidateReport* refused = reported(report, entry);
    ASSERT_NE(refused, nullptr) << entry;
    EXPECT_EQ(refused->status, KV_INVALID_ARGUMENT);
    EXPECT_TRUE(refused->directory);
  }
}

TEST_F(Environment, AnOrdinaryProgramReadsIt) {
  set("/somewhere/else");
  EXPECT_EQ(output_of(KV_TEST_PROBE), "user " + std::to_string(geteuid()) + "\ndirectory /somewhere/else\n");
}

TEST_F(Environment, AProgramWithElevatedPrivilegesDoesNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program that runs as somebody else";
  const std::string program = scratch_.root() + "/probe";
  std::filesystem::copy_file(KV_TEST_PROBE, program);
  constexpr uid_t kSomebody = 65534;
  ASSERT_EQ(chown(program.c_str(), kSomebody, kSomebody), 0);
  Scratch::set_mode(program, 04755);
  set("/somewhere/else");
  const std::string output = output_of(program);
  if (output.starts_with("user 0\n")) GTEST_SKIP() << "this file system ignores the set-user-id bit";
  EXPECT_EQ(output, "user 65534\n");
}

}  // namespace
}  // namespace kvasir::test
