// SPDX-License-Identifier: MIT
//
// Choosing a backend and reading the report, as an application does. The loader's own cases are in tests/loader.
// (Cases P21, P22.)
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

TEST(Backends, TheReportNamesWhatWasLookedAt) {
  const RuntimePtr runtime = make_runtime();
  Error e;
  kv_backend_report* handle = nullptr;
  OK(kv_backend_report_create(runtime.get(), &handle, &e));
  const ReportPtr report(handle);
  int found = 0;
  for (size_t i = 0; i < kv_backend_report_count(report.get()); i++) {
    kv_backend_entry entry = sized<kv_backend_entry>();
    OK(kv_backend_report_entry(report.get(), i, &entry, &e));
    EXPECT_GE(entry.kind, KV_ENTRY_PLUGIN);
    EXPECT_STRNE(entry.origin, "");
    if (std::string(entry.name) != "cpu" && std::string(entry.name) != "ref") continue;
    found++;
    EXPECT_EQ(entry.status, KV_OK) << entry.reason;
    ASSERT_EQ(entry.device_count, 1U);
    kv_device_info device = sized<kv_device_info>();
    OK(kv_backend_report_device(report.get(), i, 0, &device, &e));
    EXPECT_EQ(device.kind, KV_DEVICE_CPU);
    EXPECT_STRNE(device.name, "");
    FAILS(KV_INVALID_ARGUMENT, "device 1", kv_backend_report_device(report.get(), i, 1, &device, &e));
  }
  EXPECT_EQ(found, 2);
}

TEST(Backends, ANamedDeviceIsThatOneOrAnError) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  Error e;
  kv_context* context = nullptr;
  for (const char* device : {"cuda", "vulkan", "vulkan:1"}) {
    kv_context_options o = sized<kv_context_options>();
    o.device = device;
    const kv_status status = kv_context_create(model.get(), &o, &context, &e);
    if (status == KV_OK) {  // a machine that has one
      kv_context_release(context);
      continue;
    }
    EXPECT_NE(std::string(e.message).find(std::string(device).substr(0, 4)), std::string::npos) << e.message;
  }
}

TEST(Backends, AutoTellsHowItChose) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  Error e;
  kv_context_options o = sized<kv_context_options>();
  o.max_tokens = 16;
  const ContextPtr context = make_context(model.get(), o);
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(context.get(), &info, &e));
  if (std::string(info.backend) == "cpu") {
    EXPECT_NE(std::string(info.choice).find("cuda: "), std::string::npos) << info.choice;
    EXPECT_NE(std::string(info.choice).find("vulkan: "), std::string::npos) << info.choice;
  }
  EXPECT_STRNE(info.variant, "");
}

TEST(Backends, VariantsCanBeForced) {
  const RuntimePtr runtime = make_runtime();
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  Error e;
  kv_context_options o = sized<kv_context_options>();
  o.device = "cpu";
  o.variant = "scalar";
  o.max_tokens = 16;
  const ContextPtr context = make_context(model.get(), o);
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_STREQ(info.variant, "scalar");
  EXPECT_STREQ(info.device, "cpu:0");
  EXPECT_GT(info.weight_bytes, 0U);
}

TEST(Backends, ABackendPathMustBeAbsolute) {
  kv_runtime_options o = sized<kv_runtime_options>();
  o.backend_path = "/tmp:relative/dir";
  kv_runtime* runtime = nullptr;
  Error e;
  FAILS(KV_INVALID_ARGUMENT, "'relative/dir' is not an absolute directory", kv_runtime_create(&o, &runtime, &e));
  o.backend_path = nullptr;
  o.flags = 0x100;
  FAILS(KV_UNSUPPORTED, "0x100", kv_runtime_create(&o, &runtime, &e));
}

}  // namespace
}  // namespace kvasir::test
