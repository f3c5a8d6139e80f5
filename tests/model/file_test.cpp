// SPDX-License-Identifier: MIT
//
// Files, byte sources and checked arithmetic.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/checked.h"
#include "model/source.h"
#include "support/gguf_writer.h"

namespace kvasir {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "kvasir-file-" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/f\xc3\xa4 le";
    testing::write_file(path_, {'0', '1', '2', '3', '4', '5', '6', '7'});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(FileTest, ReadsExactlyWhatWasAskedFor) {
  File file;
  ASSERT_TRUE(File::open(path_, &file).ok());
  EXPECT_EQ(file.size(), 8U);
  EXPECT_EQ(file.path(), path_);
  char bytes[4] = {};
  ASSERT_TRUE(file.read(3, bytes, 3).ok());
  EXPECT_STREQ(bytes, "345");
  EXPECT_TRUE(file.read(8, bytes, 0).ok());
  EXPECT_EQ(file.read(6, bytes, 3).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(file.read(9, bytes, 0).code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(file.read(UINT64_MAX, bytes, 2).code(), KV_INVALID_ARGUMENT);
  File moved = std::move(file);
  ASSERT_TRUE(moved.read(0, bytes, 3).ok());
  EXPECT_STREQ(bytes, "012");
}

TEST_F(FileTest, SaysWhyItCannotOpen) {
  File file;
  Status status = File::open(folder_ + "/absent", &file);
  EXPECT_EQ(status.code(), KV_NOT_FOUND);
  EXPECT_EQ(status.message(), "cannot open '" + folder_ + "/absent': No such file or directory");
  EXPECT_EQ(File::open(path_ + "/below-a-file", &file).code(), KV_NOT_FOUND);
  EXPECT_EQ(File::open("", &file).code(), KV_INVALID_ARGUMENT);
  status = File::open(folder_, &file);
  EXPECT_EQ(status.code(), KV_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "'" + folder_ + "' is not a regular file");
  EXPECT_EQ(File::open("/dev/null", &file).code(), KV_INVALID_ARGUMENT);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(File::open(pipe, &file).code(), KV_INVALID_ARGUMENT) << "and does not wait for a writer";
  EXPECT_EQ(File::open(std::string(5000, 'x'), &file).code(), KV_IO);
}

TEST_F(FileTest, NoticesThatTheFileShrank) {
  File file;
  ASSERT_TRUE(File::open(path_, &file).ok());
  std::filesystem::resize_file(path_, 5);
  char bytes[8] = {};
  const Status status = file.read(0, bytes, 8);
  EXPECT_EQ(status.code(), KV_IO);
  EXPECT_EQ(status.message(), "'" + path_ + "' had 8 bytes when it was opened and now ends at 5");
}

TEST_F(FileTest, Maps) {
  File file;
  ASSERT_TRUE(File::open(path_, &file).ok());
  MappedFile mapped;
  ASSERT_TRUE(MappedFile::map(file, &mapped).ok());
  MappedFile moved = std::move(mapped);
  ASSERT_EQ(moved.bytes().size(), 8U);
  EXPECT_EQ(moved.bytes()[7], '7');
  testing::write_file(path_, {});
  ASSERT_TRUE(File::open(path_, &file).ok());
  MappedFile empty;
  ASSERT_TRUE(MappedFile::map(file, &empty).ok());
  EXPECT_TRUE(empty.bytes().empty());
}

TEST_F(FileTest, SourcesAgree) {
  const std::vector<uint8_t> bytes = {'0', '1', '2', '3', '4', '5', '6', '7'};
  std::vector<uint8_t> gone = bytes;
  std::shared_ptr<const ByteSource> sources[4];
  ASSERT_TRUE(open_file_source(path_, FileAccess::read, &sources[0]).ok());
  ASSERT_TRUE(open_file_source(path_, FileAccess::map, &sources[1]).ok());
  ASSERT_TRUE(make_memory_source(bytes, MemoryOwnership::borrow, &sources[2]).ok());
  ASSERT_TRUE(make_memory_source(gone, MemoryOwnership::copy, &sources[3]).ok());
  gone.assign(8, 0);
  for (const auto& source : sources) {
    char read[9] = {};
    EXPECT_EQ(source->size(), 8U);
    ASSERT_TRUE(source->read(0, read, 8).ok());
    EXPECT_STREQ(read, "01234567");
    EXPECT_EQ(source->read(4, read, 5).code(), KV_INVALID_ARGUMENT);
    EXPECT_EQ(source->read(UINT64_MAX, read, 1).code(), KV_INVALID_ARGUMENT);
    EXPECT_EQ(source->view(4, 5), nullptr);
    EXPECT_EQ(source->view(UINT64_MAX, 1), nullptr);
  }
  EXPECT_EQ(sources[0]->view(0, 8), nullptr);
  EXPECT_EQ(sources[1]->view(3, 1)[0], '3');
  EXPECT_EQ(sources[2]->view(2, 1), bytes.data() + 2);
  EXPECT_EQ(sources[3]->view(3, 1)[0], '3');
  EXPECT_EQ(make_memory_source({static_cast<const uint8_t*>(nullptr), 5}, MemoryOwnership::copy, &sources[0]).code(),
            KV_INVALID_ARGUMENT);
}

TEST(Checked, Arithmetic) {
  uint64_t result = 7;
  EXPECT_FALSE(checked_add<uint64_t>(UINT64_MAX, 1, &result));
  EXPECT_FALSE(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32, &result));
  EXPECT_FALSE(checked_align(UINT64_MAX - 3, 32, &result));
  EXPECT_EQ(result, 7U);
  EXPECT_TRUE(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 31, &result));
  EXPECT_EQ(result, uint64_t{1} << 63);
  EXPECT_TRUE(checked_align(33, 32, &result));
  EXPECT_EQ(result, 64U);
  EXPECT_TRUE(range_fits(8, 0, 8));
  EXPECT_FALSE(range_fits(9, 0, 8));
  EXPECT_FALSE(range_fits(1, UINT64_MAX, 8));
}

}  // namespace
}  // namespace kvasir
