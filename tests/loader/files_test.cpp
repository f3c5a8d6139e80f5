// SPDX-License-Identifier: MIT
//
// Files that are no whole plugin: cut short, damaged, of no kind that can be opened, not readable, reached through
// links, replaced meanwhile. The system's loader would die of some of them; the report has a reason for each.
#include <elf.h>
#include <link.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "loader/elf_file.h"
#include "other_user.h"
#include "place.h"

namespace kvasir::test {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  Scratch::set_mode(path, 0755);
}

class Files : public PlaceTest {
 protected:
  std::string path(const std::string& name) const { return place_ + "/" + file_of(name); }
};

TEST_F(Files, CopiesCutAtManyLengths) {
  const std::string whole = content_of(good_);
  const std::string cut = path("cut");
  write(cut, whole);
  EXPECT_TRUE(check_elf_file(cut).ok()) << check_elf_file(cut).message();
  const size_t step = 1 + whole.size() / 20000;  // every length, where no sanitizer made the plugin large
  for (size_t length = whole.size() - 1; length >= sizeof(ElfW(Ehdr)); length -= std::min(length, step)) {
    ASSERT_EQ(truncate(cut.c_str(), static_cast<off_t>(length)), 0);
    const Status status = check_elf_file(cut);
    ASSERT_TRUE(fails_with(status, KV_CORRUPT, "'" + cut + "' is cut short or damaged: its ")) << length;
    ASSERT_NE(std::string(status.message()).find("the file has " + std::to_string(length)), std::string::npos);
  }
}

TEST_F(Files, CutCopiesThroughTheWholeLoader) {
  const std::string whole = content_of(good_);
  for (size_t step = 0; step < 60; ++step) {
    const size_t length = step < 8 ? step * 9 : whole.size() * step / 60;
    write(path("cut"), whole.substr(0, length));
    const bool has_header = length >= sizeof(ElfW(Ehdr));
    scanned(path("cut"), has_header ? KV_CORRUPT : KV_IO, has_header ? "is cut short or damaged" : "cannot be loaded");
  }
}

// The loaded file with its headers changed by `spoil`.
template <class F>
std::string damaged(const std::string& file, F&& spoil) {
  std::string content = content_of(file);
  ElfW(Ehdr) header;
  std::memcpy(&header, content.data(), sizeof header);
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  const size_t bytes = segments.size() * sizeof segments[0];
  std::memcpy(segments.data(), content.data() + header.e_phoff, bytes);
  const auto offset = header.e_phoff;
  spoil(header, segments);
  std::memcpy(content.data() + offset, segments.data(), bytes);
  std::memcpy(content.data(), &header, sizeof header);
  return content;
}

using Segments = std::vector<ElfW(Phdr)>;

ElfW(Phdr) & of_type(Segments& segments, uint32_t type) {
  for (auto& segment : segments)
    if (segment.p_type == type) return segment;
  throw std::runtime_error("no such segment");
}

TEST_F(Files, DamagedHeaders) {
  const auto expect_refused = [&](auto spoil, const std::string& reason) {
    const std::string content = damaged(good_, spoil);
    write(path("damaged"), content);
    EXPECT_FALSE(scanned(path("damaged"), KV_CORRUPT, reason).opened);
  };
  expect_refused([](auto& header, Segments&) { header.e_phoff = UINT64_MAX - 8; }, "its list of segments is at");
  expect_refused([](auto& header, Segments&) { header.e_phnum = 0xffff; }, "its list of segments is at");
  expect_refused([](auto& header, Segments&) { header.e_shoff = 1u << 30; }, "its list of sections is at");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_filesz = UINT64_MAX; }, "its segment is at 0");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_offset = UINT64_MAX; }, "its segment is at");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_memsz = 1; }, "its segments in memory contradict");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_memsz = UINT64_MAX; }, "contradict each other");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_memsz = 1u << 30; }, "contradict each other");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_vaddr = UINT64_MAX; }, "contradict each other");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_LOAD).p_align = 3; }, "contradict each other");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_DYNAMIC).p_vaddr += 1u << 20; }, "lies in no loaded segment");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_DYNAMIC).p_vaddr += 4; }, "(type 0x2) lies in no loaded");
  expect_refused([](auto&, Segments& s) { of_type(s, PT_DYNAMIC).p_memsz = 1u << 20; }, "lies in no loaded segment");
}

TEST_F(Files, OfAnotherMachine) {
  for (const uint16_t machine : {uint16_t{EM_S390}, uint16_t{EM_NONE}}) {
    write(path("foreign"), damaged(good_, [&](auto& header, Segments&) { header.e_machine = machine; }));
    EXPECT_FALSE(scanned(path("foreign"), KV_IO, "cannot be loaded: " + path("foreign") + ": ").opened);
  }
  write(path("foreign"), damaged(good_, [](auto& header, Segments&) { header.e_type = ET_EXEC; }));
  scanned(path("foreign"), KV_IO, "cannot be loaded");
}

TEST_F(Files, Noise) {
  std::string noise =
      "\x7f"
      "ELF";
  uint32_t state = 1;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  write(path("noise"), noise);
  scanned(path("noise"), KV_IO, "cannot be loaded");
  write(path("noise"), std::string(5000, '\0'));
  scanned(path("noise"), KV_IO, "cannot be loaded");
}

TEST_F(Files, DevicesSocketsAndLinksToThem) {
  std::filesystem::create_symlink("/dev/zero", path("zero"));
  scanned(path("zero"), KV_INVALID_ARGUMENT, "'/dev/zero' is not a regular file");
  std::filesystem::create_symlink("/proc/self/mem", path("memory"));
  Registry registry(only({place_}), host_.services());
  const Backend* backend = nullptr;
  EXPECT_FALSE(registry.find("memory", &backend).ok());
  EXPECT_TRUE(registry.find("good", &backend).ok());
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a device node";
  if (mknod(path("node").c_str(), S_IFCHR | 0644, makedev(1, 3)) != 0)
    GTEST_SKIP() << "no device nodes in this sandbox";
  scanned(path("node"), KV_INVALID_ARGUMENT, "is not a regular file");
}

TEST_F(Files, OneThatMayNotBeRead) {
  const std::string secret = put("other", place_);
  Scratch::set_mode(secret, 0600);
  Scratch::set_mode(scratch_.root(), 0755);
  const OtherUser somebody;
  if (!somebody.active() || access(good_.c_str(), R_OK) != 0) GTEST_SKIP() << somebody.reason();
  const std::string reason = scanned(secret, KV_IO, "'" + secret + "': Permission denied").reason;
  EXPECT_EQ(reason.find("cannot open"), 0u) << reason;
}

TEST_F(Files, ChainsOfLinks) {
  const std::string elsewhere = scratch_.directory("elsewhere");
  const std::string target = put("other", elsewhere);
  std::filesystem::create_symlink(target, elsewhere + "/c");
  std::filesystem::create_symlink("c", elsewhere + "/b");
  std::filesystem::create_symlink("../elsewhere/b", path("other"));
  EXPECT_EQ(scanned(path("other"), KV_OK, "").devices.size(), 1u);
  Registry registry(only({place_}), host_.services());
  const Backend* backend = nullptr;
  ASSERT_TRUE(registry.find("other", &backend).ok());
  EXPECT_EQ(backend->path, target);
}

TEST_F(Files, LinksThatLeadNowhere) {
  std::filesystem::create_symlink(file_of("round"), path("round"));
  scanned(path("round"), KV_IO, "cannot find '" + path("round") + "': Too many levels of symbolic links");
  std::filesystem::create_symlink(file_of("pong"), path("ping"));
  std::filesystem::create_symlink(file_of("ping"), path("pong"));
  scanned(path("ping"), KV_IO, "Too many levels of symbolic links");
  std::filesystem::create_symlink(good_ + "/deeper", path("deeper"));
  scanned(path("deeper"), KV_NOT_FOUND, "Not a directory");
}

TEST_F(Files, OneThatThrows) {
  const std::string throws = put("throws", place_);
  EXPECT_TRUE(scanned(throws, KV_INTERNAL, "its entry function threw an exception: not in the mood").opened);
}

TEST_F(Files, OneThatIsReplacedBetweenReportAndUse) {
  const std::string other = put("other", place_);
  Registry registry(only({place_}), host_.services());
  const Backend* backend = nullptr;
  ASSERT_TRUE(registry.find("good", &backend).ok());
  EXPECT_EQ(reported(registry.report(), other)->status, KV_OK) << "seen, and not opened yet";
  std::filesystem::remove(other);
  put("wrong_draft", place_, file_of("other"));
  EXPECT_TRUE(fails_with(registry.find("other", &backend), KV_INCOMPATIBLE, "this library has 0 draft"));
  std::filesystem::remove(good_);  // open already: what it was stays
  put_text(good_);
  ASSERT_TRUE(registry.find("good", &backend).ok());
  EXPECT_EQ(backend->version, "1.2.3");
  registry.scan();
  EXPECT_EQ(reported(registry.report(), good_)->devices.size(), 1u);
  Registry later(only({place_}), host_.services());  // the process has that path open: it stays what it was
  ASSERT_TRUE(later.find("good", &backend).ok());
  EXPECT_EQ(backend->version, "1.2.3");
}

TEST_F(Files, OneThatLosesTrustBetweenReportAndUse) {
  const std::string other = put("other", place_);
  Registry registry(only({place_}), host_.services());
  const Backend* backend = nullptr;
  ASSERT_TRUE(registry.find("good", &backend).ok());
  Scratch::set_mode(other, 0757);
  EXPECT_TRUE(fails_with(registry.find("other", &backend), KV_DENIED, "everybody may write to it (mode 0757)"));
  std::filesystem::remove(other);
  Registry again(only({place_}), host_.services());
  ASSERT_TRUE(again.find("good", &backend).ok());
  EXPECT_EQ(again.find("other", &backend).code(), KV_NOT_FOUND);
}

}  // namespace
}  // namespace kvasir::test
