// SPDX-License-Identifier: MIT
//
// The two kinds of ByteSource: a file that is read, and bytes that are in memory (mapped, copied or borrowed).
#include "model/source.h"

#include <cinttypes>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/file.h"

namespace kvasir {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(File file) : file_(std::move(file)) {}

  const std::string& name() const override { return file_.path(); }
  uint64_t size() const override { return file_.size(); }
  Status read(uint64_t offset, void* destination, uint64_t bytes) const override {
    return file_.read(offset, destination, bytes);
  }
  const uint8_t* view(uint64_t, uint64_t) const override { return nullptr; }

 private:
  File file_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> borrowed) : name_("memory buffer"), bytes_(borrowed) {}
  explicit MemorySource(std::unique_ptr<uint8_t[]> copy, size_t size)
      : name_("memory buffer"), copy_(std::move(copy)), bytes_(copy_.get(), size) {}
  MemorySource(MappedFile mapped, std::string name)
      : name_(std::move(name)), mapped_(std::move(mapped)), bytes_(mapped_.bytes()) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  Status read(uint64_t offset, void* destination, uint64_t bytes) const override {
    KV_CHECK(range_fits(offset, bytes, bytes_.size()), KV_INVALID_ARGUMENT,
             "cannot read %" PRIu64 " bytes at %" PRIu64 " of '%s', which has %zu", bytes, offset, name_.c_str(),
             bytes_.size());
    if (bytes > 0) std::memcpy(destination, bytes_.data() + offset, bytes);
    return {};
  }
  const uint8_t* view(uint64_t offset, uint64_t bytes) const override {
    return range_fits(offset, bytes, bytes_.size()) ? bytes_.data() + offset : nullptr;
  }

 private:
  std::string name_;
  MappedFile mapped_;
  std::unique_ptr<uint8_t[]> copy_;
  std::span<const uint8_t> bytes_;
};

}  // namespace

Status open_file_source(const std::string& path, FileAccess access, std::shared_ptr<const ByteSource>* out) {
  File file;
  KV_RETURN_IF_ERROR(File::open(path, &file));
  if (access == FileAccess::read) {
    *out = std::make_shared<FileSource>(std::move(file));
    return {};
  }
  MappedFile mapped;
  KV_RETURN_IF_ERROR(MappedFile::map(file, &mapped));
  *out = std::make_shared<MemorySource>(std::move(mapped), path);
  return {};
}

Status make_memory_source(std::span<const uint8_t> bytes, MemoryOwnership ownership,
                          std::shared_ptr<const ByteSource>* out) {
  KV_CHECK(bytes.data() != nullptr || bytes.empty(), KV_INVALID_ARGUMENT, "the model's memory buffer is null");
  if (ownership == MemoryOwnership::borrow) {
    *out = std::make_shared<MemorySource>(bytes);
    return {};
  }
  auto copy = std::make_unique_for_overwrite<uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  *out = std::make_shared<MemorySource>(std::move(copy), bytes.size());
  return {};
}

}  // namespace kvasir
