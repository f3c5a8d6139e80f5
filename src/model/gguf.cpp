// SPDX-License-Identifier: MIT
//
// Look-up in an opened GGUF model, and opening one from a path with all its pieces.
#include "model/gguf.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "model/gguf_loader.h"
#include "model/printable.h"

namespace kvasir {
namespace {

// "-00002-of-00003.gguf"
constexpr size_t kPieceSuffixBytes = 20;

std::string piece_suffix(uint32_t number, uint32_t count) {
  char text[40];
  std::snprintf(text, sizeof text, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", number + 1, count);
  return text;
}

Status missing_key(std::string_view key) {
  return Status::error(KV_CORRUPT, "the file has no key '%s'", printable(key).c_str());
}

}  // namespace

const char* gguf_value_type_name(GgufType type) {
  static constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

MetadataValue Gguf::metadata(size_t index) const {
  const Entry& entry = entries_[index];
  MetadataValue value;
  value.key = {reinterpret_cast<const char*>(header_.data()) + entry.key_offset, entry.key_bytes};
  value.type = entry.type;
  value.element = entry.element;
  value.count = entry.count;
  value.data = header_.data() + entry.data_offset;
  return value;
}

std::optional<MetadataValue> Gguf::find(std::string_view key) const {
  const auto at = std::lower_bound(entries_by_key_.begin(), entries_by_key_.end(), key,
                                   [&](uint32_t i, std::string_view wanted) { return metadata(i).key < wanted; });
  if (at == entries_by_key_.end() || metadata(*at).key != key) return std::nullopt;
  return metadata(*at);
}

const TensorInfo* Gguf::find_tensor(std::string_view name) const {
  const auto at = std::lower_bound(tensors_by_name_.begin(), tensors_by_name_.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return at != tensors_by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

Status Gguf::get(std::string_view key, uint32_t* value) const {
  const auto found = find(key);
  return found ? found->as_u32(value) : Status();
}

Status Gguf::get(std::string_view key, float* value) const {
  const auto found = find(key);
  return found ? found->as_f32(value) : Status();
}

Status Gguf::get(std::string_view key, bool* value) const {
  const auto found = find(key);
  return found ? found->as_bool(value) : Status();
}

Status Gguf::get(std::string_view key, std::string* value) const {
  const auto found = find(key);
  if (!found) return {};
  std::string_view text;
  KV_RETURN_IF_ERROR(found->as_string(&text));
  *value = text;
  return {};
}

Status Gguf::require(std::string_view key, uint32_t* value) const {
  return find(key) ? get(key, value) : missing_key(key);
}

Status Gguf::require(std::string_view key, float* value) const {
  return find(key) ? get(key, value) : missing_key(key);
}

Status Gguf::require(std::string_view key, std::string* value) const {
  return find(key) ? get(key, value) : missing_key(key);
}

Status open_gguf(const std::string& path, FileAccess access, std::shared_ptr<const Gguf>* out) {
  std::shared_ptr<const ByteSource> source;
  KV_RETURN_IF_ERROR(open_file_source(path, access, &source));
  GgufLoader loader;
  KV_RETURN_IF_ERROR(loader.add(source));
  const GgufSplit split = loader.split();
  if (split.count == 1) return loader.finish(out);

  const std::string suffix = piece_suffix(split.number, split.count);
  KV_CHECK(path.size() > kPieceSuffixBytes && path.ends_with(suffix), KV_INVALID_ARGUMENT,
           "'%s' is piece %" PRIu32 " of a model of %" PRIu32 " pieces, so its name must end in '%s'", path.c_str(),
           split.number + 1, split.count, suffix.c_str());
  const std::string prefix = path.substr(0, path.size() - suffix.size());
  GgufLoader whole;  // anew: pieces go in by number, and the path may have named another than the first
  for (uint32_t i = 0; i < split.count; ++i) {
    const std::string piece = prefix + piece_suffix(i, split.count);
    const Status status = open_file_source(piece, access, &source);
    if (!status.ok()) {
      return Status::error(status.code(), "piece %" PRIu32 " of %" PRIu32 " of the split model: %s", i + 1, split.count,
                           status.message());
    }
    KV_RETURN_IF_ERROR(whole.add(source));
  }
  return whole.finish(out);
}

Status parse_gguf(std::vector<std::shared_ptr<const ByteSource>> sources, std::shared_ptr<const Gguf>* out) {
  KV_CHECK(!sources.empty(), KV_INVALID_ARGUMENT, "no file or buffer was given to read a model from");
  GgufLoader loader;
  for (auto& source : sources) KV_RETURN_IF_ERROR(loader.add(std::move(source)));
  return loader.finish(out);
}

}  // namespace kvasir
