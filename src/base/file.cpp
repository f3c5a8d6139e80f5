// SPDX-License-Identifier: MIT
//
// File and MappedFile for POSIX systems.
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <string>
#include <system_error>
#include <utility>

namespace kvasir {
namespace {

// Not strerror: that one is not thread-safe.
std::string reason(int error) { return std::generic_category().message(error); }

// Some systems cut a single read at 2 GiB.
constexpr uint64_t kLargestRead = uint64_t{1} << 30;

}  // namespace

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status File::open(const std::string& path, File* out) {
  File file;
  file.path_ = path;
  KV_CHECK(!path.empty(), KV_INVALID_ARGUMENT, "the path of the file to open is empty");
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    return Status::error(missing ? KV_NOT_FOUND : KV_IO, "cannot open '%s': %s", path.c_str(), reason(error).c_str());
  }
  struct stat facts {};
  if (::fstat(file.descriptor_, &facts) != 0) {
    const int error = errno;
    return Status::error(KV_IO, "cannot examine '%s': %s", path.c_str(), reason(error).c_str());
  }
  KV_CHECK(S_ISREG(facts.st_mode), KV_INVALID_ARGUMENT, "'%s' is not a regular file", path.c_str());
  file.size_ = static_cast<uint64_t>(facts.st_size);
  *out = std::move(file);
  return {};
}

Status File::read(uint64_t offset, void* destination, uint64_t bytes) const {
  KV_CHECK(offset <= size_ && bytes <= size_ - offset, KV_INVALID_ARGUMENT,
           "cannot read %" PRIu64 " bytes at %" PRIu64 " of '%s', which has %" PRIu64, bytes, offset, path_.c_str(),
           size_);
  auto* target = static_cast<uint8_t*>(destination);
  uint64_t done = 0;
  while (done < bytes) {
    const auto step = static_cast<size_t>(std::min(bytes - done, kLargestRead));
    const ssize_t got = ::pread(descriptor_, target + done, step, static_cast<off_t>(offset + done));
    if (got < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      return Status::error(KV_IO, "cannot read '%s' at %" PRIu64 ": %s", path_.c_str(), offset + done,
                           reason(error).c_str());
    }
    KV_CHECK(got != 0, KV_IO, "'%s' had %" PRIu64 " bytes when it was opened and now ends at %" PRIu64, path_.c_str(),
             size_, offset + done);
    done += static_cast<uint64_t>(got);
  }
  return {};
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

Status MappedFile::map(const File& file, MappedFile* out) {
  MappedFile mapped;
  if (file.size_ > 0) {  // an empty mapping does not exist
    void* memory = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
    if (memory == MAP_FAILED) {
      const int error = errno;
      return Status::error(error == ENOMEM ? KV_OUT_OF_MEMORY : KV_IO, "cannot map '%s': %s", file.path_.c_str(),
                           reason(error).c_str());
    }
    mapped.data_ = static_cast<const uint8_t*>(memory);
    mapped.size_ = file.size_;
  }
  *out = std::move(mapped);
  return {};
}

}  // namespace kvasir
