// SPDX-License-Identifier: MIT
//
// Which candidate serves a name, when it is opened, how long its instance lives, and what the report says meanwhile.
#include "built_in.h"
#include "support.h"

namespace kvasir::test {
namespace {

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    for (Behaviour* behaviour : {&cpu, &vulkan, &cuda, &ref}) behaviour->reset();
    first_ = scratch_.directory("first");
    second_ = scratch_.directory("second");
  }

  Scratch scratch_;
  Host host_;
  std::string first_;
  std::string second_;
  const Backend* backend_ = nullptr;
};

TEST_F(RegistryTest, OpensNothingThatNobodyAskedFor) {
  Registry registry(only({}, kBuiltIn), host_.services());
  EXPECT_TRUE(registry.report().empty());
  ASSERT_TRUE(registry.find("cpu", &backend_).ok());
  EXPECT_EQ(cpu.queried, 1);
  EXPECT_EQ(vulkan.queried + cuda.queried + ref.queried, 0);
  for (const CandidateReport& candidate : registry.report()) {
    EXPECT_EQ(candidate.status, KV_OK);
    EXPECT_EQ(candidate.origin, Origin::kBuiltIn);
    EXPECT_EQ(candidate.reason, candidate.name == "cpu" ? "" : "not opened: nobody has asked for it");
    EXPECT_EQ(candidate.version, candidate.name == "cpu" ? "1.2.3" : "");
  }
}

TEST_F(RegistryTest, AskingForOnePluginMapsNoOther) {
  const std::string good = put("good", first_);
  const std::string other = put("other", first_);
  Registry registry(only({first_}), host_.services());
  ASSERT_TRUE(registry.find("good", &backend_).ok());
  const auto report = registry.report();
  EXPECT_TRUE(reported(report, good)->opened);
  EXPECT_FALSE(reported(report, other)->opened);
}

TEST_F(RegistryTest, OneInstancePerRegistryThatEndsWithIt) {
  {
    Registry registry(only({}, kBuiltIn), host_.services());
    ASSERT_TRUE(registry.find("cpu", &backend_).ok());
    const Backend* again = nullptr;
    ASSERT_TRUE(registry.find("cpu", &again).ok());
    registry.scan();
    EXPECT_EQ(again, backend_);
    EXPECT_EQ(backend_->name, "cpu");
    EXPECT_EQ(backend_->version, "1.2.3");
    EXPECT_EQ(backend_->path, "");
    EXPECT_EQ(cpu.created, 1);
    Registry second(only({}, kBuiltIn), host_.services());
    ASSERT_TRUE(second.find("cpu", &again).ok());
    EXPECT_NE(again->instance, backend_->instance);
    EXPECT_EQ(cpu.created, 2);
    EXPECT_EQ(cpu.destroyed, 0);
  }
  EXPECT_EQ(cpu.destroyed, 2);
  EXPECT_EQ(vulkan.created, vulkan.destroyed);
}

TEST_F(RegistryTest, PluginsGetTheHostTable) {
  Registry registry(only({}, kBuiltIn), host_.services());
  ASSERT_TRUE(registry.find("cpu", &backend_).ok());
  const kvb_host& host = backend_->instance->host;
  EXPECT_EQ(host.struct_size, sizeof(kvb_host));
  EXPECT_EQ(host.abi_version, KVB_ABI_VERSION);
  EXPECT_EQ(host.log_user, &host_);
}

TEST_F(RegistryTest, TheFirstOfANameWinsAndLaterOnesAreListed) {
  const std::string winner = put("good", first_);
  const std::string loser = put("good", second_);
  Registry registry(only({first_, second_}), host_.services());
  registry.scan();
  ASSERT_TRUE(registry.find("good", &backend_).ok());
  EXPECT_EQ(backend_->path, winner);
  const auto report = registry.report();
  EXPECT_EQ(reported(report, winner)->status, KV_OK);
  const CandidateReport* duplicate = reported(report, loser);
  ASSERT_NE(duplicate, nullptr);
  EXPECT_EQ(duplicate->status, KV_UNSUPPORTED);
  EXPECT_EQ(duplicate->reason, "not used: 'good' was found before, as '" + winner + "'");
  EXPECT_FALSE(duplicate->opened);
}

TEST_F(RegistryTest, AFirstThatCannotBeUsedIsNotQuietlyReplacedByALaterOne) {
  const std::string broken = put_text(first_ + "/" + file_of("good"));
  put("good", second_);
  Registry registry(only({first_, second_}), host_.services());
  EXPECT_TRUE(fails_with(registry.find("good", &backend_), KV_IO, broken));
  EXPECT_TRUE(fails_with(registry.find("good", &backend_), KV_IO, broken)) << "the same answer the second time";
  EXPECT_EQ(backend_, nullptr);
}

TEST_F(RegistryTest, AnotherMajorDoesNotStandInTheWay) {
  put("good", first_, "libkvasir_backend_good.v7.so");
  put("good", second_);
  Registry registry(only({first_, second_}), host_.services());
  EXPECT_TRUE(registry.find("good", &backend_).ok());
}

TEST_F(RegistryTest, DirectoriesOfTheApplicationComeBeforeWhatIsBuiltIn) {
  constexpr StaticBackend kGood[] = {{"good", BuiltIn<&cpu>::query<kCpu>}};
  put("good", first_);
  Registry registry(only({first_}, kGood), host_.services());
  ASSERT_TRUE(registry.find("good", &backend_).ok());
  EXPECT_EQ(backend_->path, first_ + "/" + file_of("good"));
  EXPECT_EQ(cpu.queried, 0);
}

TEST_F(RegistryTest, BuiltInBackendsAreNegotiatedWithToo) {
  constexpr StaticBackend kMisnamed[] = {{"npu", BuiltIn<&cpu>::query<kCpu>}};
  Registry registry(only({}, kMisnamed), host_.services());
  EXPECT_TRUE(fails_with(registry.find("npu", &backend_), KV_INCOMPATIBLE,
                         "backend 'npu' (part of the library) is refused: it calls itself 'cpu'"));
}

TEST_F(RegistryTest, ReportsEveryDirectory) {
  put("good", first_);
  const std::string none = scratch_.root() + "/none";
  Registry registry(only({first_, second_, none, "relative"}), host_.services());
  registry.scan();
  const auto report = registry.report();
  ASSERT_EQ(report.size(), 5u);
  EXPECT_TRUE(report[0].directory && report[0].path == first_ && report[0].status == KV_OK);
  EXPECT_EQ(report[1].name, "good");
  EXPECT_TRUE(report[2].directory && report[2].reason == "'" + second_ + "' holds no plugin");
  EXPECT_NE(report[3].reason.find("'" + none + "' cannot be read: No such file"), std::string::npos);
  EXPECT_EQ(report[4].status, KV_INVALID_ARGUMENT);
}

TEST_F(RegistryTest, WhatIsMissingIsNamedWithThePlaces) {
  put("good", first_, "libkvasir_backend_npu.v3.so");
  Registry registry(only({first_, second_}), host_.services());
  const Status status = registry.find("npu", &backend_);
  EXPECT_TRUE(
      fails_with(status, KV_NOT_FOUND, "there is no backend 'npu': no libkvasir_backend_npu.v0.so in '" + first_));
  EXPECT_TRUE(fails_with(status, KV_NOT_FOUND, "', '" + second_ + "'"));
  EXPECT_TRUE(fails_with(status, KV_NOT_FOUND, "is for backend ABI 3, this library has 0"));
  for (const char* name : {"", "CPU", "a/b", "../cpu", "auto", "cpu\n"})
    EXPECT_EQ(registry.find(name, &backend_).code(), KV_INVALID_ARGUMENT) << name;
}

TEST_F(RegistryTest, PlacesBesideTheLibraryAreSearchedUnlessForbidden) {
  LoaderOptions options;
  options.ignore_environment = true;
  options.built_in = {};
  Registry registry(options, host_.services());
  registry.scan();
  const std::string beside = own_directory() + "/kvasir/backends";
  EXPECT_NE(reported(registry.report(), beside), nullptr);
  options.no_search = true;
  Registry without(options, host_.services());
  without.scan();
  EXPECT_TRUE(without.report().empty());
}

TEST_F(RegistryTest, ACreateThatFailsIsTriedAgain) {
  cpu.create_status = KV_OUT_OF_MEMORY;
  Registry registry(only({}, kBuiltIn), host_.services());
  EXPECT_TRUE(fails_with(registry.find("cpu", &backend_), KV_OUT_OF_MEMORY, "instance_create failed"));
  EXPECT_TRUE(fails_with(registry.find("cpu", &backend_), KV_OUT_OF_MEMORY, "not today"));
  EXPECT_EQ(registry.report()[0].status, KV_OUT_OF_MEMORY);
  cpu.create_status = KV_OK;
  EXPECT_TRUE(registry.find("cpu", &backend_).ok());
  EXPECT_EQ(registry.report()[0].status, KV_OK);
  EXPECT_EQ(cpu.queried, 1);
}

TEST_F(RegistryTest, LoadTakesThatFile) {
  put("good", first_);
  const std::string wanted = put("good", second_);
  Registry registry(only({first_}), host_.services());
  ASSERT_TRUE(registry.load(wanted, &backend_).ok());
  EXPECT_EQ(backend_->path, wanted);
  const Backend* found = nullptr;
  ASSERT_TRUE(registry.find("good", &found).ok());
  EXPECT_EQ(found, backend_);
  EXPECT_TRUE(registry.load(wanted, nullptr).ok()) << "once more is fine";
  EXPECT_EQ(registry.report()[0].origin, Origin::kFile);
}

TEST_F(RegistryTest, LoadComesTooLateForAServedName) {
  const std::string serving = put("good", first_);
  const std::string late = put("good", second_);
  Registry registry(only({first_}), host_.services());
  ASSERT_TRUE(registry.find("good", &backend_).ok());
  EXPECT_TRUE(fails_with(registry.load(late, nullptr), KV_INVALID_ARGUMENT, "'good' is served by '" + serving + "'"));
  EXPECT_TRUE(registry.load(serving, nullptr).ok());
  std::filesystem::create_directory_symlink(first_, scratch_.root() + "/link");
  EXPECT_TRUE(registry.load(scratch_.root() + "/link/" + file_of("good"), nullptr).ok()) << "the same file";
}

TEST_F(RegistryTest, LoadRefusesWhatIsNoPluginPath) {
  put("good", first_);
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(first_);
  Registry registry(only({}), host_.services());
  for (const std::string& path : {std::string(), file_of("good"), "./" + file_of("good")})
    EXPECT_TRUE(fails_with(registry.load(path, nullptr), KV_INVALID_ARGUMENT, "is not an absolute path"));
  std::filesystem::current_path(here);
  EXPECT_TRUE(fails_with(registry.load("/usr/lib/libm.so", nullptr), KV_INVALID_ARGUMENT, "is not called libkvasir_"));
  EXPECT_TRUE(fails_with(registry.load(first_, nullptr), KV_INVALID_ARGUMENT, "is not called libkvasir_backend_"));
  const std::string none = second_ + "/" + file_of("good");
  EXPECT_TRUE(fails_with(registry.load(none, nullptr), KV_NOT_FOUND, none));
  EXPECT_EQ(registry.load(second_ + "/libkvasir_backend_good.v1.so", nullptr).code(), KV_INCOMPATIBLE);
}

TEST_F(RegistryTest, AFailedLoadIsReportedOnceAndHidesNothing) {
  const std::string bad = put_text(second_ + "/" + file_of("good"));
  put("good", first_);
  Registry registry(only({first_}), host_.services());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(registry.load(bad, nullptr).code(), KV_IO);
  auto report = registry.report();
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].path, bad);
  EXPECT_TRUE(registry.find("good", &backend_).ok());
  std::filesystem::remove(bad);
  put("other", second_);
  EXPECT_TRUE(registry.load(second_ + "/" + file_of("other"), nullptr).ok());
}

TEST_F(RegistryTest, AFileThatWasRepairedLoads) {
  const std::string path = put_text(first_ + "/" + file_of("good"));
  Registry registry(only({}), host_.services());
  EXPECT_EQ(registry.load(path, nullptr).code(), KV_IO);
  std::filesystem::remove(path);
  put("good", first_);
  EXPECT_TRUE(registry.load(path, &backend_).ok());
  EXPECT_EQ(registry.report().size(), 1u);
}

}  // namespace
}  // namespace kvasir::test
