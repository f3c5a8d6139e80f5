// SPDX-License-Identifier: MIT
//
// Read-only files: exact positioned reads, and mapping for those who ask for it. A file that shrinks after it was opened
// makes a read fail with a sentence; a mapped file that shrinks makes the process fail, which is why mapping is opt-in.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace kvasir {

// An open regular file. Movable; reads are thread-safe.
class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  // KV_NOT_FOUND when there is no such file, KV_INVALID_ARGUMENT for a directory or device, KV_IO otherwise.
  static Status open(const std::string& path, File* out);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened

  // Fills `destination` with exactly `bytes` bytes from `offset`, or fails.
  Status read(uint64_t offset, void* destination, uint64_t bytes) const;

 private:
  friend class MappedFile;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

// A whole file in the address space, read-only. Touching a page that was cut off the file raises SIGBUS.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  static Status map(const File& file, MappedFile* out);

  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kvasir
