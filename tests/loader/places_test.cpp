// SPDX-License-Identifier: MIT
//
// Directories: odd names, too long, closed, open to others, none at all, and where the process happens to stand.
// (Cases P21.)
#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <climits>

#include "other_user.h"
#include "place.h"

namespace kvasir::test {
namespace {

class Places : public PlaceTest {
 protected:
  // The outcome of looking for `good` in these directories.
  Status find_in(const std::vector<std::string>& directories) {
    registry_ = std::make_unique<Registry>(only(directories), host_.services());
    backend_ = nullptr;
    return registry_->find("good", &backend_);
  }

  // Directories named 250 times 'd', one in the other, until the path of the last one has more than `length` bytes.
  std::string deep_directory(size_t length) {
    const std::string part(250, 'd');
    std::string path = place_;
    int parent = open(path.c_str(), O_PATH | O_DIRECTORY);
    while (path.size() <= length) {
      EXPECT_TRUE(mkdirat(parent, part.c_str(), 0755) == 0 || errno == EEXIST) << path;
      const int child = openat(parent, part.c_str(), O_PATH | O_DIRECTORY);
      close(parent);
      parent = child;
      path += "/" + part;
    }
    close(parent);
    return path;
  }

  std::unique_ptr<Registry> registry_;
  const Backend* backend_ = nullptr;
};

TEST_F(Places, OddNames) {
  for (const char* name : {"two words", "new\nline", "\xC3\xA4\xE6\x97\xA5\xF0\x9F\x8C\xB2", "\xFF\xFE", "%s%n",
                           "-rf *", "quote'\"", "\\back", "tab\t", "a:b", ".hidden", "libkvasir_backend_x.v0.so"}) {
    const std::string odd = scratch_.directory(name);
    const std::string path = put("good", odd);
    put_text(odd + "/" + file_of("text"));
    ASSERT_TRUE(find_in({odd}).ok()) << name;
    EXPECT_EQ(backend_->path, path);
    registry_->scan();
    const auto report = registry_->report();
    const CandidateReport* text = reported(report, odd + "/" + file_of("text"));
    ASSERT_NE(text, nullptr);
    EXPECT_NE(text->reason.find("cannot be loaded"), std::string::npos);
    EXPECT_EQ(text->reason.find('\n'), std::string::npos) << "a reason is one line";
  }
  EXPECT_EQ(host_.logged(KV_LOG_WARNING, "\n"), 0u);
  EXPECT_EQ(host_.logged(KV_LOG_WARNING, "new line"), 1u);
}

TEST_F(Places, PathsOfAllLengths) {
  const std::string longest = deep_directory(PATH_MAX - 400);
  ASSERT_LT(longest.size() + file_of("good").size(), size_t{PATH_MAX});
  const std::string file = put("good", longest);
  ASSERT_TRUE(find_in({longest}).ok());
  EXPECT_EQ(backend_->path, file);
  const std::string beyond = deep_directory(PATH_MAX);
  EXPECT_TRUE(fails_with(find_in({beyond}), KV_NOT_FOUND, "cannot be read: File name too long"));
  EXPECT_TRUE(fails_with(registry_->load(beyond + "/" + file_of("good"), nullptr), KV_IO, "File name too long"));
  const std::string absurd = "/" + std::string(1000000, 'x');
  EXPECT_TRUE(fails_with(find_in({absurd}), KV_NOT_FOUND, "cannot be read: File name too long"));
  EXPECT_TRUE(find_in({beyond, absurd, place_}).ok()) << "and hides nothing";
}

TEST_F(Places, ThatAreNotThere) {
  const std::string none = scratch_.root() + "/none";
  EXPECT_TRUE(find_in({none, good_, none + "/deeper", place_}).ok());
  const auto report = registry_->report();
  const CandidateReport* absent = reported(report, none);
  ASSERT_NE(absent, nullptr);
  EXPECT_EQ(absent->status, KV_NOT_FOUND);
  EXPECT_EQ(absent->reason, "directory '" + none + "' cannot be read: No such file or directory");
  EXPECT_EQ(report[1].reason, "directory '" + good_ + "' cannot be read: Not a directory");
}

TEST_F(Places, ThatMayNotBeRead) {
  const std::string closed = scratch_.directory("closed");
  put("good", closed);
  Scratch::set_mode(closed, 0700);
  Scratch::set_mode(scratch_.root(), 0755);
  const OtherUser somebody;
  if (!somebody.active() || access(good_.c_str(), R_OK) != 0) GTEST_SKIP() << somebody.reason();
  EXPECT_TRUE(
      fails_with(find_in({closed}), KV_NOT_FOUND, "directory '" + closed + "' cannot be read: Permission denied"));
  EXPECT_TRUE(fails_with(registry_->load(closed + "/" + file_of("good"), nullptr), KV_IO, "Permission denied"));
  EXPECT_TRUE(find_in({closed, place_}).ok());
}

TEST_F(Places, BelowAParentThatIsOpenToAll) {
  const std::string parent = scratch_.directory("parent");
  const std::string inner = scratch_.directory("parent/inner");
  put("good", inner);
  for (const mode_t mode : {mode_t{0777}, mode_t{01777}}) {
    Scratch::set_mode(parent, mode);
    EXPECT_TRUE(fails_with(find_in({inner}), KV_DENIED, "'" + parent + "' is not trusted: everybody may write to it"));
    std::filesystem::remove(scratch_.root() + "/link");
    std::filesystem::create_directory_symlink(inner, scratch_.root() + "/link");
    EXPECT_TRUE(fails_with(find_in({scratch_.root() + "/link"}), KV_DENIED, "'" + parent + "' is not trusted"));
  }
  Scratch::set_mode(parent, 0755);
  EXPECT_TRUE(find_in({inner}).ok());
}

TEST_F(Places, OfSomebodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  ASSERT_EQ(chown(place_.c_str(), 54321, 54321), 0);
  EXPECT_TRUE(fails_with(find_in({place_}), KV_DENIED, "'" + place_ + "' is not trusted: it belongs to user 54321"));
}

TEST_F(Places, WhereTheProcessStandsDoesNotMatter) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");
  EXPECT_TRUE(find_in({place_}).ok());
  const std::string gone = scratch_.directory("gone");
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  EXPECT_TRUE(find_in({place_}).ok()) << "the current directory is no more";
  EXPECT_TRUE(registry_->load(good_, nullptr).ok());
  EXPECT_TRUE(fails_with(find_in({"."}), KV_NOT_FOUND, "'.' is not an absolute path"));
  EXPECT_FALSE(own_directory().empty());
  std::filesystem::current_path(here);
}

TEST_F(Places, BesideALibraryThatWasOpenedThroughALink) {
  const std::string real = scratch_.directory("real");
  const std::string library = real + "/libloader_own_directory.so";
  std::filesystem::copy_file(KV_TEST_PLUGINS "/libloader_own_directory.so", library);
  const std::string link = scratch_.directory("links") + "/library.so.0";
  std::filesystem::create_symlink("../real/libloader_own_directory.so", link);
  void* opened = dlopen(link.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(opened, nullptr) << dlerror();
  using OwnDirectory = void (*)(char*, size_t);
  char text[PATH_MAX] = {};
  reinterpret_cast<OwnDirectory>(dlsym(opened, "kv_test_own_directory"))(text, sizeof text);
  EXPECT_EQ(std::string(text), real) << "plugins lie beside the file, not beside the link";
  dlclose(opened);
}

}  // namespace
}  // namespace kvasir::test
