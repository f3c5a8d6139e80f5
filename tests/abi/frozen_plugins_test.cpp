// SPDX-License-Identifier: MIT
//
// Plugins built with frozen headers, and today's library: while the backend ABI is a draft, the same draft loads, and any
// other is refused with a sentence.
#include <dlfcn.h>

#include <filesystem>

#include "kvasir/backend.h"
#include "support/kv.h"

namespace kvasir::test {
namespace {

uint32_t abi_version_of(const std::string& plugin) {
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return *static_cast<const uint32_t*>(dlsym(library, "kv_test_abi_version"));
}

TEST(FrozenPlugins, TheSameDraftLoadsAndAnyOtherIsRefusedWithASentence) {
  int loaded = 0, refused = 0;
  for (const auto& baseline : std::filesystem::directory_iterator(KV_TEST_FROZEN_PLUGINS)) {
    const std::string plugin = baseline.path().string() + "/libkvasir_backend_frozen.v0.so";
    SCOPED_TRACE(plugin);
    const uint32_t version = abi_version_of(plugin);
    const RuntimePtr runtime = make_runtime();
    Error e;
    if (version != KVB_ABI_VERSION) {
      const std::string sentence = "it was built for backend ABI " + std::to_string(version >> 16) + " draft " +
                                   std::to_string(version & 0xffff) + ", this library has 0 draft " +
                                   std::to_string(KVB_ABI_DRAFT);
      FAILS(KV_INCOMPATIBLE, sentence, kv_runtime_load_backend(runtime.get(), plugin.c_str(), &e));
      ++refused;
      continue;
    }
    OK(kv_runtime_load_backend(runtime.get(), plugin.c_str(), &e));
    kv_backend_report* handle = nullptr;
    OK(kv_backend_report_create(runtime.get(), &handle, &e));
    const ReportPtr report(handle);
    kv_device_info device = sized<kv_device_info>();
    OK(kv_backend_report_device(report.get(), 0, 0, &device, &e));
    EXPECT_STREQ(device.name, "frozen");
    ++loaded;
  }
  EXPECT_GE(refused, 1) << "one of another draft is always among them";
  EXPECT_GE(loaded, 1) << "the newest baseline is of another draft: run tests/abi/freeze.sh";
}

}  // namespace
}  // namespace kvasir::test
