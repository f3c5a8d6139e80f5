// SPDX-License-Identifier: MIT
//
// Names of plugin files, the order of the places, and what a directory is said to hold.
#include "loader/search.h"

#include <dlfcn.h>

#include "support.h"

namespace kvasir::test {
namespace {

TEST(PluginName, OfThisAbi) {
  for (const char* name : {"cpu", "ref", "my_npu2", "a", "abcdefghijklmnopqrstuvwxyz_12345"}) {
    const PluginName parsed = parse_plugin_name(plugin_file_name(name));
    EXPECT_TRUE(parsed.plugin_like);
    EXPECT_TRUE(parsed.status.ok()) << parsed.status.message();
    EXPECT_EQ(parsed.name, name);
  }
  EXPECT_EQ(plugin_file_name("cpu"), "libkvasir_backend_cpu.v0.so");
}

TEST(PluginName, OfAnotherAbi) {
  const PluginName parsed = parse_plugin_name("libkvasir_backend_cpu.v12.so");
  EXPECT_TRUE(parsed.plugin_like);
  EXPECT_EQ(parsed.name, "cpu");
  EXPECT_TRUE(fails_with(parsed.status, KV_INCOMPATIBLE, "'libkvasir_backend_cpu.v12.so' is for backend ABI 12, this"));
}

TEST(PluginName, Malformed) {
  for (const char* file :
       {"libkvasir_backend_cpu.so", "libkvasir_backend_cpu.v.so", "libkvasir_backend_cpu.vx.so",
        "libkvasir_backend_.v0.so", "libkvasir_backend_CPU.v0.so", "libkvasir_backend_a b.v0.so",
        "libkvasir_backend_auto.v0.so", "libkvasir_backend_cpu.v-1.so", "libkvasir_backend_cpu.v0x.so",
        "libkvasir_backend_cpu.v99999999999.so", "libkvasir_backend_cpu.v0.v0.so",
        "libkvasir_backend_abcdefghijklmnopqrstuvwxyz_123456.v0.so", "libkvasir_backend_.so"}) {
    const PluginName parsed = parse_plugin_name(file);
    EXPECT_TRUE(parsed.plugin_like) << file;
    EXPECT_TRUE(fails_with(parsed.status, KV_INVALID_ARGUMENT, file));
  }
}

TEST(PluginName, OfOtherFiles) {
  for (const char* file : {"", ".so", "libkvasir.so.0", "libkvasir_backend_cpu.v0.so.bak", "README",
                           "libkvasir_backend_.s", "libkvasir_backend_", "kvasir_backend_cpu.v0.so"})
    EXPECT_FALSE(parse_plugin_name(file).plugin_like) << file;
}

TEST(Search, Order) {
  Scratch scratch;
  const std::string application = scratch.directory("application");
  const std::string environment = scratch.directory("environment");
  const auto places = search_directories({application}, environment + ":/does/not/exist", scratch.root());
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[0].path, application);
  EXPECT_EQ(places[0].origin, Origin::kDirectory);
  EXPECT_EQ(places[1].path, environment);
  EXPECT_EQ(places[2].path, "/does/not/exist");
  EXPECT_EQ(places[2].origin, Origin::kEnvironment);
  EXPECT_EQ(places[3].path, scratch.root() + "/kvasir/backends");
  EXPECT_EQ(places[3].origin, Origin::kBesideLibrary);
  EXPECT_EQ(places[4].origin, Origin::kCompiledIn);
}

TEST(Search, NoPlaceTwice) {
  Scratch scratch;
  const std::string place = scratch.directory("place");
  const std::string link = scratch.root() + "/link";
  std::filesystem::create_directory_symlink(place, link);
  const auto places = search_directories({place, place + "/", link}, link + ":" + place + ":/none:/none", "");
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].path, place);
  EXPECT_EQ(places[1].path, "/none");
  EXPECT_EQ(places[2].origin, Origin::kCompiledIn);
}

TEST(Search, ARelativePlaceDoesNotHideTheSamePlaceNamedInFull) {
  Scratch scratch;
  const std::string place = scratch.directory("place");
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(scratch.root());
  const auto places = search_directories({"place", place}, "", "");
  std::filesystem::current_path(here);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[1].path, place);
}

TEST(Search, ListsPluginsSorted) {
  Scratch scratch;
  for (const char* file : {"libkvasir_backend_z.v0.so", "README.md", "libkvasir_backend_a.v1.so", "libkvasir.so",
                           "libkvasir_backend_a.v0.so"})
    put_text(scratch.root() + "/" + file);
  std::vector<std::string> files;
  ASSERT_TRUE(list_directory(scratch.root(), &files).ok());
  EXPECT_EQ(files, (std::vector<std::string>{"libkvasir_backend_a.v0.so", "libkvasir_backend_a.v1.so",
                                             "libkvasir_backend_z.v0.so"}));
}

TEST(Search, ExplainsWhatIsNoDirectory) {
  Scratch scratch;
  std::vector<std::string> files = {"untouched"};
  EXPECT_TRUE(fails_with(list_directory(scratch.root() + "/none", &files), KV_NOT_FOUND, "/none' cannot be read: No "));
  const std::string file = put_text(scratch.root() + "/file");
  EXPECT_TRUE(fails_with(list_directory(file, &files), KV_NOT_FOUND, "Not a directory"));
  for (const char* relative : {"", ".", "relative/place"})
    EXPECT_TRUE(fails_with(list_directory(relative, &files), KV_INVALID_ARGUMENT, "is not an absolute path"));
  EXPECT_EQ(files, std::vector<std::string>{"untouched"});
}

TEST(Search, OwnDirectoryIsThatOfThisProgramWhereverItIsStartedFrom) {
  const std::string expected = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");
  EXPECT_EQ(own_directory(), expected);
  std::filesystem::current_path(here);
}

TEST(Search, OwnDirectoryOfALibraryOpenedByARelativePath) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(KV_TEST_PLUGINS);
  void* library = dlopen("./libloader_own_directory.so", RTLD_NOW | RTLD_LOCAL);
  std::filesystem::current_path("/");  // a path relative to here would now lead elsewhere
  ASSERT_NE(library, nullptr) << dlerror();
  using OwnDirectory = void (*)(char*, size_t);
  const auto call = reinterpret_cast<OwnDirectory>(dlsym(library, "kv_test_own_directory"));
  ASSERT_NE(call, nullptr);
  char text[4096] = {};
  call(text, sizeof text);
  std::filesystem::current_path(here);
  EXPECT_EQ(std::string(text), std::filesystem::canonical(KV_TEST_PLUGINS).string());
  dlclose(library);
}

TEST(Search, EveryOriginHasItsText) {
  std::vector<std::string> texts;
  for (uint32_t value = 1; value <= 6; ++value) texts.emplace_back(origin_text(static_cast<Origin>(value)));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_NE(texts[i], "unknown");
    for (size_t j = 0; j < i; ++j) EXPECT_NE(texts[i], texts[j]);
  }
}

}  // namespace
}  // namespace kvasir::test
