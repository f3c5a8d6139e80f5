// SPDX-License-Identifier: MIT
//
// ByteSource: where the bytes of a model come from (a file that is read, a file that is mapped, memory of the caller, a
// copy of it). Everything above asks for ranges and never knows which. Immutable and thread-safe after creation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace kvasir {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // What error messages call it: the path, or "memory buffer".
  virtual const std::string& name() const = 0;
  virtual uint64_t size() const = 0;

  // Copies [offset, offset + bytes) or fails; the range is checked here.
  virtual Status read(uint64_t offset, void* destination, uint64_t bytes) const = 0;

  // The same range in place, valid while the source lives and aligned to nothing; null when it is not in memory or out
  // of range.
  virtual const uint8_t* view(uint64_t offset, uint64_t bytes) const = 0;
};

enum class FileAccess : uint8_t { read, map };
enum class MemoryOwnership : uint8_t {
  copy,   // the caller's buffer may go after the call
  borrow  // the caller's buffer stays valid and unchanged while the source lives
};

Status open_file_source(const std::string& path, FileAccess access, std::shared_ptr<const ByteSource>* out);
Status make_memory_source(std::span<const uint8_t> bytes, MemoryOwnership ownership,
                          std::shared_ptr<const ByteSource>* out);

}  // namespace kvasir
