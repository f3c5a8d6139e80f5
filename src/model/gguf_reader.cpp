// SPDX-License-Identifier: MIT
//
// The growing buffer of GgufReader.
#include "model/gguf_reader.h"

#include <algorithm>
#include <cinttypes>

#include "model/printable.h"

namespace kvasir {
namespace {

constexpr uint64_t kFirstFill = uint64_t{1} << 16;
// The largest vocabularies take some 20 MB.
constexpr uint64_t kMaxHeader = uint64_t{1} << 30;

}  // namespace

std::string GgufReader::place() const {
  std::string place = part_;
  if (name_bytes_ > 0) place += " '" + printable(text(name_offset_, name_bytes_)) + "'";
  return place;
}

Status GgufReader::fill(uint64_t bytes) {
  KV_CHECK(bytes <= bytes_left(), KV_CORRUPT,
           "'%s' is damaged or cut short: %s needs %" PRIu64 " bytes, the file ends %" PRIu64 " bytes short",
           source_.name().c_str(), place().c_str(), bytes, bytes - bytes_left());
  const uint64_t needed = position_ + bytes;
  KV_CHECK(needed <= kMaxHeader, KV_UNSUPPORTED,
           "'%s' has a header of more than %" PRIu64 " bytes: %s needs %" PRIu64 " bytes", source_.name().c_str(),
           kMaxHeader, place().c_str(), bytes);
  const uint64_t target = std::min(source_.size(), std::max({needed, 2 * uint64_t{buffer_.size()}, kFirstFill}));
  const uint64_t have = buffer_.size();
  buffer_.resize(target);
  return source_.read(have, buffer_.data() + have, target - have);
}

std::vector<uint8_t> GgufReader::take(uint64_t end) {
  buffer_.resize(end);
  buffer_.shrink_to_fit();
  return std::move(buffer_);
}

}  // namespace kvasir
