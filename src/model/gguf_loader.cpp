// SPDX-License-Identifier: MIT
//
// The GGUF format itself: header, keys, tensor records, data. All numbers are checked where they are read.
#include "model/gguf_loader.h"

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "model/gguf_types.h"
#include "model/printable.h"
#include "model/types.h"

namespace kvasir {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;  // the format's own limit
constexpr uint32_t kMaxArrayDepth = 4;
constexpr uint32_t kMaxAlignment = 65536;
// The least that a key (length, type, one byte) and a tensor record (length, one dimension, type, offset) take: more of
// them than fit the file cannot exist.
constexpr uint64_t kLeastKeyBytes = 8 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

Status check_count(const GgufReader& reader, const ByteSource& source, uint64_t count, uint64_t least_bytes,
                   const char* what) {
  KV_CHECK(count <= reader.bytes_left() / least_bytes, KV_CORRUPT,
           "'%s' claims to hold %" PRIu64 " %s, its %" PRIu64 " bytes have room for %" PRIu64 " at most",
           source.name().c_str(), count, what, source.size(), reader.bytes_left() / least_bytes);
  return {};
}

Status parse_value_type(GgufReader* reader, GgufType* out) {
  uint32_t number = 0;
  KV_RETURN_IF_ERROR(reader->read(&number));
  KV_CHECK(number < kGgufTypeCount, KV_CORRUPT, "%s has unknown type %" PRIu32, reader->place().c_str(), number);
  *out = static_cast<GgufType>(number);
  return {};
}

// Passes the elements of an array; every one takes at least a byte, so a false count ends at the end of the file.
Status skip_elements(GgufReader* reader, GgufType element, uint64_t count, uint32_t depth) {
  const uint64_t scalar = gguf_scalar_bytes(element);
  if (scalar > 0) {
    uint64_t bytes = 0;
    KV_CHECK(checked_mul(count, scalar, &bytes), KV_CORRUPT, "%s has %" PRIu64 " elements, more than any file can hold",
             reader->place().c_str(), count);
    return reader->skip(bytes);
  }
  uint64_t offset = 0;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (element == GgufType::string) {
      KV_RETURN_IF_ERROR(reader->read_string(&offset, &bytes));
      continue;
    }
    KV_CHECK(depth < kMaxArrayDepth, KV_CORRUPT, "%s has arrays nested more than %" PRIu32 " deep",
             reader->place().c_str(), kMaxArrayDepth);
    GgufType inner = GgufType::u8;
    uint64_t inner_count = 0;
    KV_RETURN_IF_ERROR(parse_value_type(reader, &inner));
    KV_RETURN_IF_ERROR(reader->read(&inner_count));
    KV_RETURN_IF_ERROR(skip_elements(reader, inner, inner_count, depth + 1));
  }
  return {};
}

}  // namespace

Status GgufLoader::parse_start(GgufReader* reader, const ByteSource& source, uint32_t* version, uint64_t* tensors,
                               uint64_t* keys) {
  const char* name = source.name().c_str();
  uint32_t magic = 0;
  reader->at("the header");
  KV_RETURN_IF_ERROR(reader->read(&magic));
  constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
  KV_CHECK(magic != __builtin_bswap32(kMagic), KV_UNSUPPORTED, "'%s' is a byte-swapped (big-endian) GGUF file", name);
  KV_CHECK(magic == kMagic, KV_CORRUPT, "'%s' is not a GGUF file: it does not begin with the letters GGUF", name);
  KV_RETURN_IF_ERROR(reader->read(version));
  const uint32_t swapped = __builtin_bswap32(*version);
  KV_CHECK(*version <= 0xFFFF || swapped > 0xFFFF, KV_UNSUPPORTED,
           "'%s' is a byte-swapped (big-endian) GGUF file of version %" PRIu32, name, swapped);
  KV_CHECK(*version == 2 || *version == 3, KV_INCOMPATIBLE,
           "'%s' is a GGUF file of version %" PRIu32 ", versions 2 and 3 are supported", name, *version);
  KV_RETURN_IF_ERROR(reader->read(tensors));
  KV_RETURN_IF_ERROR(reader->read(keys));
  KV_RETURN_IF_ERROR(check_count(*reader, source, *tensors, kLeastTensorBytes, "tensors"));
  return check_count(*reader, source, *keys, kLeastKeyBytes, "keys");
}

Status GgufLoader::parse_entry(GgufReader* reader, Gguf::Entry* entry) {
  uint64_t key_bytes = 0;
  reader->at("the name of a key");
  KV_RETURN_IF_ERROR(reader->read(&key_bytes));
  KV_CHECK(key_bytes > 0, KV_CORRUPT, "the file has an empty key at byte %" PRIu64, reader->position() - 8);
  KV_CHECK(key_bytes <= kMaxKeyBytes, KV_CORRUPT,
           "the key at byte %" PRIu64 " is %" PRIu64 " bytes long, at most %" PRIu64 " are possible",
           reader->position() - 8, key_bytes, kMaxKeyBytes);
  entry->key_bytes = static_cast<uint32_t>(key_bytes);
  entry->key_offset = reader->position();
  KV_RETURN_IF_ERROR(reader->skip(key_bytes));
  reader->at("the value of key", entry->key_offset, entry->key_bytes);
  KV_CHECK(reader->text(entry->key_offset, key_bytes).find('\0') == std::string_view::npos, KV_CORRUPT,
           "%s has a zero byte in its name", reader->place().c_str());

  KV_RETURN_IF_ERROR(parse_value_type(reader, &entry->type));
  entry->count = 1;
  if (entry->type == GgufType::string) return reader->read_string(&entry->data_offset, &entry->count);
  if (entry->type == GgufType::array) {
    KV_RETURN_IF_ERROR(parse_value_type(reader, &entry->element));
    KV_RETURN_IF_ERROR(reader->read(&entry->count));
    entry->data_offset = reader->position();
    return skip_elements(reader, entry->element, entry->count, 1);
  }
  entry->data_offset = reader->position();
  return reader->skip(gguf_scalar_bytes(entry->type));
}

Status GgufLoader::parse_tensor(GgufReader* reader, TensorInfo* info, uint64_t* offset) {
  uint64_t name_offset = 0;
  uint64_t name_bytes = 0;
  reader->at("the name of a tensor");
  KV_RETURN_IF_ERROR(reader->read_string(&name_offset, &name_bytes));
  reader->at("the record of tensor", name_offset, name_bytes);
  KV_RETURN_IF_ERROR(reader->read(&info->dim_count));
  const std::string name = printable(reader->text(name_offset, name_bytes));
  KV_CHECK(info->dim_count >= 1 && info->dim_count <= 4, KV_CORRUPT,
           "tensor '%s' has %" PRIu32 " dimensions, between 1 and 4 are possible", name.c_str(), info->dim_count);
  for (uint32_t i = 0; i < info->dim_count; ++i) KV_RETURN_IF_ERROR(reader->read(&info->dims[i]));
  uint32_t gguf_type = 0;
  KV_RETURN_IF_ERROR(reader->read(&gguf_type));
  KV_RETURN_IF_ERROR(reader->read(offset));
  info->type = type_from_gguf(gguf_type);
  KV_CHECK(info->type != KV_TYPE_DEFAULT, KV_UNSUPPORTED,
           "tensor '%s' has type %" PRIu32 " (%s), which is not supported", name.c_str(), gguf_type,
           gguf_type_name(gguf_type));
  info->name = reader->text(name_offset, name_bytes);
  const Status status = complete_tensor_info(info);
  return status.ok() ? Status() : Status::error(KV_CORRUPT, "%s", status.message());
}

Status GgufLoader::sort_entries(Gguf* gguf) {
  const auto key = [&](uint32_t i) {
    const Gguf::Entry& entry = gguf->entries_[i];
    return std::string_view(reinterpret_cast<const char*>(gguf->header_.data()) + entry.key_offset, entry.key_bytes);
  };
  std::vector<uint32_t>& order = gguf->entries_by_key_;
  order.resize(gguf->entries_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  const auto twin =
      std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
  KV_CHECK(twin == order.end(), KV_CORRUPT, "key '%s' is there twice", printable(key(*twin)).c_str());
  return {};
}

// The keys about the file itself: alignment and split.
Status GgufLoader::read_own_keys(Piece* piece) {
  const Gguf& gguf = piece->gguf;
  if (const auto value = gguf.find("general.alignment")) {
    KV_CHECK(value->type == GgufType::u32, KV_CORRUPT, "key 'general.alignment' is of type %s, expected u32",
             gguf_value_type_name(value->type));
    uint32_t alignment = 0;
    KV_RETURN_IF_ERROR(value->as_u32(&alignment));
    KV_CHECK(alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= kMaxAlignment, KV_CORRUPT,
             "key 'general.alignment' is %" PRIu32 ", expected a power of two of at most %" PRIu32, alignment,
             kMaxAlignment);
    piece->alignment = alignment;
  }
  KV_RETURN_IF_ERROR(gguf.get("split.count", &piece->split.count));
  KV_RETURN_IF_ERROR(gguf.get("split.no", &piece->split.number));
  KV_RETURN_IF_ERROR(gguf.get("split.tensors.count", &piece->split.tensors));
  if (piece->split.count == 0) piece->split = {};  // some tools write 0 for a model in one piece
  KV_CHECK(piece->split.count <= 65535 && piece->split.number < piece->split.count, KV_CORRUPT,
           "keys 'split.no' and 'split.count' say piece %" PRIu32 " (from 0) of %" PRIu32, piece->split.number,
           piece->split.count);
  return {};
}

// Turns offsets within the data into offsets within the file, and checks that each tensor is whole and its own.
Status GgufLoader::place_tensors(const ByteSource& source, Piece* piece) {
  Gguf& gguf = piece->gguf;
  const uint64_t size = source.size();
  for (size_t i = 0; i < gguf.tensors_.size(); ++i) {
    const TensorInfo& info = gguf.tensors_[i];
    GgufExtent& extent = gguf.extents_[i];
    const std::string name = printable(info.name);
    KV_CHECK(extent.offset % piece->alignment == 0, KV_CORRUPT,
             "tensor '%s' begins at byte %" PRIu64 " of the data, no multiple of the alignment %" PRIu64, name.c_str(),
             extent.offset, piece->alignment);
    uint64_t end = 0;
    KV_CHECK(
        checked_add(extent.offset, piece->data_start, &extent.offset) && checked_add(extent.offset, info.bytes, &end),
        KV_CORRUPT, "tensor '%s' begins beyond any file", name.c_str());
    KV_CHECK(end <= size, KV_CORRUPT,
             "tensor '%s' needs %" PRIu64 " bytes, the file ends %" PRIu64 " bytes short ('%s')", name.c_str(),
             info.bytes, end - size, source.name().c_str());
  }
  std::vector<uint32_t> order(gguf.tensors_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return gguf.extents_[a].offset < gguf.extents_[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const uint32_t before = order[i - 1];
    KV_CHECK(gguf.extents_[order[i]].offset >= gguf.extents_[before].offset + gguf.tensors_[before].bytes, KV_CORRUPT,
             "tensors '%s' and '%s' overlap", printable(gguf.tensors_[before].name).c_str(),
             printable(gguf.tensors_[order[i]].name).c_str());
  }
  return {};
}

Status GgufLoader::parse(const ByteSource& source, Piece* piece) {
  Gguf& gguf = piece->gguf;
  GgufReader reader(source);
  uint64_t tensors = 0;
  uint64_t keys = 0;
  KV_RETURN_IF_ERROR(parse_start(&reader, source, &gguf.version_, &tensors, &keys));
  for (uint64_t i = 0; i < keys; ++i) {
    Gguf::Entry entry;
    KV_RETURN_IF_ERROR(parse_entry(&reader, &entry));
    gguf.entries_.push_back(entry);
  }
  const uint64_t metadata_end = reader.position();
  for (uint64_t i = 0; i < tensors; ++i) {
    TensorInfo info;
    GgufExtent extent;
    KV_RETURN_IF_ERROR(parse_tensor(&reader, &info, &extent.offset));
    gguf.tensors_.push_back(std::move(info));
    gguf.extents_.push_back(extent);
  }
  const uint64_t header_end = reader.position();
  gguf.header_ = reader.take(metadata_end);
  KV_RETURN_IF_ERROR(sort_entries(&gguf));
  KV_RETURN_IF_ERROR(read_own_keys(piece));
  KV_CHECK(checked_align(header_end, piece->alignment, &piece->data_start), KV_CORRUPT, "the header is too long");
  return place_tensors(source, piece);
}

Status GgufLoader::add(std::shared_ptr<const ByteSource> source) {
  Piece piece;
  KV_RETURN_IF_ERROR(parse(*source, &piece));
  if (gguf_ == nullptr) {
    gguf_ = std::make_shared<Gguf>(std::move(piece.gguf));
    gguf_->sources_.push_back(std::move(source));
    split_ = piece.split;
    return {};
  }
  const auto number = static_cast<uint32_t>(gguf_->sources_.size());
  KV_CHECK(piece.split.count == split_.count && piece.split.number == number, KV_CORRUPT,
           "'%s' is piece %" PRIu32 " of %" PRIu32 " by its own keys, expected piece %" PRIu32 " of %" PRIu32,
           source->name().c_str(), piece.split.number + 1, piece.split.count, number + 1, split_.count);
  for (GgufExtent& extent : piece.gguf.extents_) extent.piece = number;
  auto& tensors = gguf_->tensors_;
  tensors.insert(tensors.end(), std::make_move_iterator(piece.gguf.tensors_.begin()),
                 std::make_move_iterator(piece.gguf.tensors_.end()));
  gguf_->extents_.insert(gguf_->extents_.end(), piece.gguf.extents_.begin(), piece.gguf.extents_.end());
  gguf_->sources_.push_back(std::move(source));
  return {};
}

Status GgufLoader::finish(std::shared_ptr<const Gguf>* out) {
  const std::vector<TensorInfo>& tensors = gguf_->tensors_;
  KV_CHECK(gguf_->sources_.size() == split_.count && split_.number == 0, KV_INVALID_ARGUMENT,
           "'%s' is piece %" PRIu32 " of a model of %" PRIu32 " pieces, %zu were given", gguf_->name().c_str(),
           split_.number + 1, split_.count, gguf_->sources_.size());
  KV_CHECK(split_.count == 1 || split_.tensors == 0 || split_.tensors == tensors.size(), KV_CORRUPT,
           "key 'split.tensors.count' is %" PRIu32 ", the pieces hold %zu tensors", split_.tensors, tensors.size());
  std::vector<uint32_t>& order = gguf_->tensors_by_name_;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  const auto twin = std::adjacent_find(order.begin(), order.end(),
                                       [&](uint32_t a, uint32_t b) { return tensors[a].name == tensors[b].name; });
  KV_CHECK(twin == order.end(), KV_CORRUPT, "tensor '%s' is there twice", printable(tensors[*twin].name).c_str());
  *out = std::move(gguf_);
  return {};
}

}  // namespace kvasir
