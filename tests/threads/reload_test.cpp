// SPDX-License-Identifier: MIT
//
// libkvasir as a guest that comes and goes: opened, used and closed twenty times, and two copies of it side by side.
// This program does not link it. (Case P23.)
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/kvasir.h"

namespace {

template <class T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

uint64_t status_number(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(std::strlen(key)));
  }
  return 0;
}

size_t mappings_of(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(part) != std::string::npos ? 1 : 0;
  return count;
}

// One opened copy of the library.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }
  ~Library() { close(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void close() {
    if (handle_ == nullptr) return;
    EXPECT_EQ(dlclose(std::exchange(handle_, nullptr)), 0);
  }
  template <class F>
  F* function(F*, const char* name) const {
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr) ADD_FAILURE() << dlerror();
    return reinterpret_cast<F*>(symbol);
  }

 private:
  void* handle_;
};

// decltype only: nothing of the library is linked.
#define KV_CALL(library, name) (library).function(static_cast<decltype(&name)>(nullptr), #name)

// Loads the bundled model and runs a few tokens on `device`; the logits.
class Session {
 public:
  Session(const Library& library, const std::string& plugins) : library_(library) {
    kv_runtime_options o = sized<kv_runtime_options>();
    o.flags = KV_RUNTIME_ALLOW_UNTRUSTED;
    o.backend_path = plugins.c_str();
    const std::string path = std::string(std::getenv("KVASIR_TEST_DATA")) + "/demo.gguf";
    EXPECT_EQ(KV_CALL(library_, kv_runtime_create)(&o, &runtime_, &error_), KV_OK) << error_.message;
    EXPECT_EQ(KV_CALL(library_, kv_model_load_file)(runtime_, path.c_str(), nullptr, &model_, &error_), KV_OK)
        << error_.message;
  }
  ~Session() {
    KV_CALL(library_, kv_model_release)(model_);
    KV_CALL(library_, kv_runtime_release)(runtime_);
  }

  std::vector<float> run(const char* device) {
    kv_context_options o = sized<kv_context_options>();
    o.device = device;
    o.max_tokens = 64;
    kv_context* context = nullptr;
    EXPECT_EQ(KV_CALL(library_, kv_context_create)(model_, &o, &context, &error_), KV_OK) << error_.message;
    if (context == nullptr) return {};
    const int32_t tokens[] = {1, 2, 3, 4};
    kv_step_result result = sized<kv_step_result>();
    EXPECT_EQ(KV_CALL(library_, kv_prefill)(context, 0, tokens, 4, nullptr, &result, &error_), KV_OK) << error_.message;
    const std::vector<float> logits(result.rows, result.rows + result.width);
    KV_CALL(library_, kv_context_release)(context);
    return logits;
  }

 private:
  const Library& library_;
  kv_runtime* runtime_ = nullptr;
  kv_model* model_ = nullptr;
  kv_error error_ = sized<kv_error>();
};

std::string plugins() { return std::getenv("KVASIR_TEST_PLUGINS"); }

TEST(Reload, TwentyTimes) {
  const size_t threads = status_number("Threads:");
  std::vector<float> first;
  uint64_t settled = 0;  // kilobytes
  size_t plugin_mappings = 0;
  for (int round = 0; round < 20; round++) {
    const Library library(KV_TEST_LIBRARY);
    {
      Session session(library, plugins());
      std::vector<float> logits = session.run("cpu");
      const std::vector<float> more = session.run("ref");
      logits.insert(logits.end(), more.begin(), more.end());
      if (round == 0) first = logits;
      EXPECT_EQ(logits, first) << "round " << round;
    }
    const_cast<Library&>(library).close();
    EXPECT_EQ(status_number("Threads:"), threads) << "round " << round;
    EXPECT_EQ(mappings_of("/libkvasir.so"), 0U) << "the library stays mapped, round " << round;
    if (round == 0) plugin_mappings = mappings_of("libkvasir_backend_cpu");
    EXPECT_EQ(mappings_of("libkvasir_backend_cpu"), plugin_mappings) << "plugins stay, once";
    if (round == 5) settled = status_number("VmRSS:");
  }
  EXPECT_GT(plugin_mappings, 0U);
  const uint64_t left = status_number("VmRSS:");
  std::printf("  resident after 6 rounds %llu kB, after 20 %llu kB\n", static_cast<unsigned long long>(settled),
              static_cast<unsigned long long>(left));
  EXPECT_LT(left, settled + 4096);
}

// Plugins of the two copies are the same files, or copies too.
class TwoCopies : public ::testing::TestWithParam<bool> {};

TEST_P(TwoCopies, SideBySide) {
  std::string pattern = (std::filesystem::temp_directory_path() / "kvasir_copies_XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const auto copy = [&](const char* name) {
    const std::filesystem::path place = folder / name;
    std::filesystem::create_directories(place);
    std::filesystem::copy_file(KV_TEST_LIBRARY, place / "libkvasir.so");
    if (!GetParam()) return place.string();
    for (const auto& plugin : std::filesystem::directory_iterator(plugins())) {
      if (plugin.path().extension() == ".so") std::filesystem::copy(plugin.path(), place / plugin.path().filename());
    }
    return place.string();
  };
  const std::string one = copy("one"), two = copy("two");
  {
    Library a(one + "/libkvasir.so");
    const Library b(two + "/libkvasir.so");
    Session second(b, GetParam() ? two : plugins());
    const std::vector<float> want = second.run("cpu");
    {
      Session first(a, GetParam() ? one : plugins());
      EXPECT_EQ(first.run("cpu"), want);
      EXPECT_EQ(second.run("cpu"), want);
      EXPECT_EQ(first.run("ref"), second.run("ref"));
    }
    a.close();
    EXPECT_EQ(second.run("cpu"), want);
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Plugins, TwoCopies, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "CopiedToo" : "Shared"; });

}  // namespace
