// SPDX-License-Identifier: MIT
//
// From what an application asks for to one device: strict by name, `auto` with its reasons.
#include "built_in.h"
#include "support.h"

namespace kvasir::test {
namespace {

class Choose : public ::testing::Test {
 protected:
  Choose() : registry_(only({}, kBuiltIn), host_.services()) {
    for (Behaviour* behaviour : {&cpu, &vulkan, &cuda, &ref}) behaviour->reset();
    cpu.kinds = ref.kinds = {KVB_DEVICE_CPU};
    vulkan.reason = "libvulkan.so.1 is not there";
    cuda.reason = "libcuda.so.1 is not there";
  }

  std::string chosen(const char* spec) {
    const Status status = registry_.choose(spec, &choice_);
    return status.ok() ? choice_.backend->name + ":" + std::to_string(choice_.device) : status.message();
  }

  // "cuda, vulkan"
  std::string passed_over() const {
    std::string names;
    for (const PassedOver& other : choice_.passed_over) names += (names.empty() ? "" : ", ") + other.name;
    return names;
  }

  Host host_;
  Registry registry_;
  Choice choice_;
};

TEST_F(Choose, AutoTakesTheCpuWhereNothingElseIsAndSaysWhy) {
  for (const char* spec : {static_cast<const char*>(nullptr), "auto"}) {
    EXPECT_EQ(chosen(spec), "cpu:0");
    ASSERT_EQ(passed_over(), "cuda, vulkan");
    EXPECT_EQ(choice_.passed_over[0].status, KV_NOT_FOUND);
    EXPECT_EQ(choice_.passed_over[0].reason, "backend 'cuda' has 0 devices: libcuda.so.1 is not there");
    EXPECT_EQ(choice_.passed_over[1].reason, "backend 'vulkan' has 0 devices: libvulkan.so.1 is not there");
  }
  EXPECT_EQ(ref.queried, 0);
  for (const CandidateReport& candidate : registry_.report()) {
    if (candidate.name != "cuda") continue;
    EXPECT_EQ(candidate.status, KV_OK);
    EXPECT_EQ(candidate.reason, "0 devices: libcuda.so.1 is not there");
  }
}

TEST_F(Choose, AutoPrefersCudaThenVulkan) {
  vulkan.kinds = {KVB_DEVICE_INTEGRATED_GPU};
  EXPECT_EQ(chosen("auto"), "vulkan:0");
  EXPECT_EQ(passed_over(), "cuda");
  cuda.kinds = {KVB_DEVICE_GPU};
  EXPECT_EQ(chosen("auto"), "cuda:0");
  EXPECT_EQ(passed_over(), "");
  EXPECT_EQ(cpu.queried, 0);
}

TEST_F(Choose, AutoTakesTheMostCapableDevice) {
  vulkan.kinds = {KVB_DEVICE_SOFTWARE, KVB_DEVICE_OTHER, KVB_DEVICE_INTEGRATED_GPU, KVB_DEVICE_GPU, KVB_DEVICE_GPU};
  EXPECT_EQ(chosen("auto"), "vulkan:3");
  EXPECT_EQ(choice_.info.kind, static_cast<uint32_t>(KVB_DEVICE_GPU));
  EXPECT_EQ(choice_.info.name, std::string(128, 'n'));
  vulkan.kinds = {KVB_DEVICE_SOFTWARE, KVB_DEVICE_OTHER};
  EXPECT_EQ(chosen("auto"), "vulkan:1");
}

TEST_F(Choose, ASoftwareGpuIsNeverPreferredToTheCpu) {
  vulkan.kinds = {KVB_DEVICE_SOFTWARE};
  EXPECT_EQ(chosen("auto"), "cpu:0");
  ASSERT_EQ(passed_over(), "cuda, vulkan");
  EXPECT_NE(choice_.passed_over[1].reason.find("is a GPU in software"), std::string::npos);
  EXPECT_EQ(chosen("vulkan"), "vulkan:0") << "asked for by name it is taken";
  cpu.kinds.clear();
  EXPECT_EQ(chosen("auto"), "vulkan:0") << "there is nothing else";
  EXPECT_EQ(passed_over(), "cuda, cpu");
}

TEST_F(Choose, AutoWithNothingUsable) {
  cpu.kinds.clear();
  cpu.reason = "no processor";
  const std::string text = chosen("auto");
  EXPECT_EQ(text,
            "no backend can be used: backend 'cuda' has 0 devices: libcuda.so.1 is not there; "
            "backend 'vulkan' has 0 devices: libvulkan.so.1 is not there; "
            "backend 'cpu' has 0 devices: no processor");
  Registry empty(only({}), host_.services());
  EXPECT_TRUE(fails_with(empty.choose("auto", &choice_), KV_NOT_FOUND, "no libkvasir_backend_cpu.v0.so"));
}

TEST_F(Choose, ByNameIsStrict) {
  EXPECT_EQ(chosen("cpu"), "cpu:0");
  EXPECT_EQ(chosen("ref"), "ref:0");
  EXPECT_TRUE(choice_.passed_over.empty());
  choice_ = {};
  EXPECT_TRUE(fails_with(registry_.choose("cuda", &choice_), KV_NOT_FOUND, "0 devices: libcuda.so.1 is not there"));
  EXPECT_TRUE(fails_with(registry_.choose("npu", &choice_), KV_NOT_FOUND, "there is no backend 'npu'"));
  EXPECT_EQ(choice_.backend, nullptr);
  vulkan.reason = "";
  EXPECT_TRUE(fails_with(registry_.choose("vulkan", &choice_), KV_NOT_FOUND, "the plugin gives no reason"));
}

TEST_F(Choose, ByNumber) {
  vulkan.kinds = {KVB_DEVICE_GPU, KVB_DEVICE_INTEGRATED_GPU};
  EXPECT_EQ(chosen("vulkan:0"), "vulkan:0");
  EXPECT_EQ(chosen("vulkan:1"), "vulkan:1");
  EXPECT_EQ(choice_.info.kind, static_cast<uint32_t>(KVB_DEVICE_INTEGRATED_GPU));
  EXPECT_EQ(chosen("vulkan:2"), "backend 'vulkan' has no device 2: it has 2, counted from 0");
  EXPECT_EQ(chosen("cuda:0"), "backend 'cuda' has 0 devices: libcuda.so.1 is not there");
}

TEST_F(Choose, BadSpecsAreSentences) {
  const char* specs[] = {"",
                         ":",
                         ":0",
                         "cpu:",
                         "cpu:x",
                         "cpu:-1",
                         "cpu:+1",
                         "cpu: 1",
                         "cpu:1x",
                         "cpu:0:0",
                         "cpu:99999999999",
                         "cpu:4294967295",
                         "CPU",
                         "auto:0",
                         "/tmp/x.so",
                         "./cpu",
                         "cpu ",
                         " cpu",
                         "cpu,vulkan",
                         "cpu\n",
                         "a.b"};
  for (const char* spec : specs) {
    const Status status = registry_.choose(spec, &choice_);
    EXPECT_TRUE(fails_with(status, KV_INVALID_ARGUMENT, std::string(spec) + "' names no device: "));
  }
  const std::string endless(100000, 'c');
  EXPECT_EQ(registry_.choose(endless.c_str(), &choice_).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(choice_.backend, nullptr);
  EXPECT_EQ(cpu.queried, 0);
}

TEST_F(Choose, ASickDeviceHidesNoOther) {
  cuda.kinds = {0, KVB_DEVICE_GPU};
  EXPECT_EQ(chosen("auto"), "cuda:1");
  EXPECT_TRUE(fails_with(registry_.choose("cuda:0", &choice_), KV_NOT_FOUND, "device 0 is sick"));
  cuda.kinds = {0};
  EXPECT_EQ(chosen("auto"), "cpu:0");
  EXPECT_NE(choice_.passed_over[0].reason.find("device_info failed with status 7: device 0 is sick"),
            std::string::npos);
}

TEST_F(Choose, ACountThatFailsOrIsAbsurd) {
  cuda.count_status = KV_DEVICE_LOST;
  EXPECT_TRUE(fails_with(registry_.choose("cuda", &choice_), KV_DEVICE_LOST, "device_count failed with status 7: the"));
  EXPECT_EQ(chosen("auto"), "cpu:0");
  EXPECT_EQ(choice_.passed_over[0].status, KV_DEVICE_LOST);
  cuda.count_status = KV_OK;
  cuda.kinds.assign(5000, KVB_DEVICE_GPU);
  EXPECT_TRUE(fails_with(registry_.choose("cuda", &choice_), KV_INTERNAL, "claims to have 5000 devices"));
  cuda.kinds = {KVB_DEVICE_GPU};
  EXPECT_EQ(chosen("cuda"), "cuda:0") << "devices are read again";
}

}  // namespace
}  // namespace kvasir::test
