// SPDX-License-Identifier: MIT
//
// What an application meets, through kvasir.h alone: which plugins are opened for what it asks, what it is told when a
// backend cannot be had, how `auto` chose, and odd values of backend_path. (Cases P21, P22.)
#include "support.h"
#include "support/toy_model.h"

namespace kvasir::test {
namespace {

class Application : public ::testing::Test {
 protected:
  Application() : place_(scratch_.directory("place")) {
    const std::string cpu = file_of("cpu");
    const std::string built = std::string(std::getenv("KVASIR_TEST_PLUGINS")) + "/" + cpu;
    std::filesystem::copy_file(built, place_ + "/" + cpu);
    Scratch::set_mode(place_ + "/" + cpu, 0755);
    for (const char* name : {"cuda", "ref", "vulkan"}) put("marks", place_, file_of(name));
    put("marks", place_, "libkvasir_backend_cpu.v1.so");
    put("marks", place_, "libkvasir_backend_CPU.v0.so");
  }

  RuntimePtr runtime(const std::string& path) {
    kv_runtime_options o = sized<kv_runtime_options>();
    o.flags = KV_RUNTIME_NO_SEARCH;
    o.backend_path = path.c_str();
    kv_runtime* made = nullptr;
    if (kv_runtime_create(&o, &made, &e_) != KV_OK) ADD_FAILURE() << e_.message;
    return RuntimePtr(made);
  }

  kv_context_options options(const char* device) {
    kv_context_options o = sized<kv_context_options>();
    o.device = device;
    o.max_tokens = 16;
    return o;
  }

  // Files of plugins that were opened, by the marks they left.
  std::vector<std::string> opened() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(place_)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".opened")) names.push_back(name.substr(0, name.size() - 7));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Error e_;
  Scratch scratch_;
  const std::string place_;
};

TEST_F(Application, AskingForCpuOpensNoOtherPlugin) {
  const RuntimePtr runtime = Application::runtime(place_);
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  EXPECT_TRUE(opened().empty()) << "a model needs no backend";
  kv_memory_plan plan = sized<kv_memory_plan>();
  const kv_context_options o = options("cpu");
  Error e;
  OK(kv_context_plan(model.get(), &o, &plan, &e));
  OK(kv_model_prepare(model.get(), "cpu", nullptr, &e));
  const ContextPtr context = make_context(model.get(), o);
  EXPECT_EQ(prefill(context.get(), KV_DEFAULT_SEQUENCE, {1, 2, 3}).size(), 64u);
  EXPECT_EQ(opened(), std::vector<std::string>{});
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_STREQ(info.choice, "") << "named: nothing was chosen";
}

TEST_F(Application, AutoOpensWhatItPrefersAndSaysWhatItFound) {
  const RuntimePtr runtime = Application::runtime(place_);
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  const ContextPtr context = make_context(model.get(), options("auto"));
  EXPECT_EQ(opened(), (std::vector<std::string>{file_of("cuda"), file_of("vulkan")})) << "not ref, nor another major";
  kv_context_info info = sized<kv_context_info>();
  Error e;
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_STREQ(info.backend, "cpu");
  EXPECT_STREQ(info.choice,
               "cuda: backend 'cuda' has 0 devices: its driver libdriver.so.1 is not there\n"
               "vulkan: backend 'vulkan' has 0 devices: its driver libdriver.so.1 is not there");
}

TEST_F(Application, AReportOpensEverythingOfThisAbiAndNothingElse) {
  const RuntimePtr runtime = Application::runtime(place_);
  Error e;
  kv_backend_report* handle = nullptr;
  OK(kv_backend_report_create(runtime.get(), &handle, &e));
  const ReportPtr report(handle);
  EXPECT_EQ(opened(), (std::vector<std::string>{file_of("cuda"), file_of("ref"), file_of("vulkan")}));
  std::vector<std::string> reasons;
  for (size_t i = 0; i < kv_backend_report_count(report.get()); ++i) {
    kv_backend_entry entry = sized<kv_backend_entry>();
    OK(kv_backend_report_entry(report.get(), i, &entry, &e));
    if (entry.kind == KV_ENTRY_PLUGIN && entry.status != KV_OK) reasons.emplace_back(entry.reason);
  }
  EXPECT_EQ(reasons,
            (std::vector<std::string>{"'libkvasir_backend_CPU.v0.so' carries no valid backend name",
                                      "'libkvasir_backend_cpu.v1.so' is for backend ABI 1, this library has 0"}));
}

TEST_F(Application, ANamedBackendThatCannotBeHadIsAnErrorThatNamesTheMissingLibrary) {
  std::filesystem::remove(place_ + "/" + file_of("vulkan"));
  put("missing_dependency", place_, file_of("vulkan"));
  const RuntimePtr runtime = Application::runtime(place_);
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  Error e;
  kv_context* none = nullptr;
  kv_memory_plan plan = sized<kv_memory_plan>();
  const struct {
    const char* device;
    kv_status status;
    const char* library;
  } cases[] = {{"vulkan", KV_IO, "libkvasir_test_absent.so: cannot open shared object file"},
               {"vulkan:1", KV_IO, "libkvasir_test_absent.so: cannot open shared object file"},
               {"cuda", KV_NOT_FOUND, "backend 'cuda' has 0 devices: its driver libdriver.so.1 is not there"},
               {"npu", KV_NOT_FOUND, "there is no backend 'npu': no libkvasir_backend_npu.v0.so in '"}};
  for (const auto& c : cases) {
    const kv_context_options o = options(c.device);
    FAILS(c.status, c.library, kv_context_create(model.get(), &o, &none, &e));
    FAILS(c.status, c.library, kv_context_plan(model.get(), &o, &plan, &e));
    FAILS(c.status, c.library, kv_model_prepare(model.get(), c.device, nullptr, &e));
  }
  EXPECT_EQ(none, nullptr);
  const ContextPtr context = make_context(model.get(), options(nullptr));
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_NE(std::string(info.choice).find("\nvulkan: '"), std::string::npos) << info.choice;
  EXPECT_NE(std::string(info.choice).find("libkvasir_test_absent.so"), std::string::npos) << info.choice;
}

TEST_F(Application, ABackendThatThrowsSpoilsOnlyItself) {
  std::filesystem::remove(place_ + "/" + file_of("cuda"));
  const std::string throws = put("throws", place_, file_of("cuda"));
  const RuntimePtr runtime = Application::runtime(place_);
  const ModelPtr model = random_model(runtime.get(), small_config(), 1);
  Error e;
  FAILS(KV_INTERNAL, "not in the mood", kv_runtime_load_backend(runtime.get(), throws.c_str(), &e));
  const ContextPtr context = make_context(model.get(), options(nullptr));
  kv_context_info info = sized<kv_context_info>();
  OK(kv_context_get_info(context.get(), &info, &e));
  EXPECT_STREQ(info.backend, "cpu");
  EXPECT_NE(std::string(info.choice).find("threw an exception: not in the mood"), std::string::npos) << info.choice;
}

TEST_F(Application, EmptyEntriesOfTheBackendPathAreNoPlaces) {
  for (const std::string& path : {place_ + ":", ":" + place_, "::" + place_ + "::", place_ + "/", "/:" + place_}) {
    const RuntimePtr runtime = Application::runtime(path);
    const ModelPtr model = random_model(runtime.get(), small_config(), 1);
    const kv_context_options o = options("cpu");
    kv_memory_plan plan = sized<kv_memory_plan>();
    Error e;
    OK(kv_context_plan(model.get(), &o, &plan, &e));
  }
  for (const char* path : {"", ":", ":::"}) {
    const RuntimePtr runtime = Application::runtime(path);
    Error e;
    kv_backend_report* handle = nullptr;
    OK(kv_backend_report_create(runtime.get(), &handle, &e));
    EXPECT_EQ(kv_backend_report_count(handle), 0u) << "not the current directory";
    kv_backend_report_release(handle);
  }
  kv_runtime_options o = sized<kv_runtime_options>();
  kv_runtime* none = nullptr;
  Error e;
  for (const char* path : {".", "place", ":./place", "/:../x", " /"}) {
    o.backend_path = path;
    FAILS(KV_INVALID_ARGUMENT, "is not an absolute directory", kv_runtime_create(&o, &none, &e));
  }
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace kvasir::test
