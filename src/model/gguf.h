// SPDX-License-Identifier: MIT
//
// GGUF v2 and v3 files: typed metadata and the list of tensors. Everything in a file is checked against the bytes it
// has before it is used or allocated for; nothing here knows what the keys mean (config.h and vocabulary do).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/source.h"
#include "model/weights.h"

namespace kvasir {

enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

const char* gguf_value_type_name(GgufType type);

// One key and its value: a view into the Gguf, valid while that lives. The as_* functions refuse another kind of value
// with a sentence that names the key, and write only on success. Integers convert where the value fits, f64 to f32 by
// rounding; nothing else converts.
struct MetadataValue {
  std::string_view key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // arrays only
  uint64_t count = 1;               // elements of an array, bytes of a string
  const uint8_t* data = nullptr;    // the first element as encoded in the file (a string: its first byte)

  Status as_u32(uint32_t* out) const;
  Status as_u64(uint64_t* out) const;
  Status as_i64(int64_t* out) const;
  Status as_f32(float* out) const;
  Status as_f64(double* out) const;
  Status as_bool(bool* out) const;
  Status as_string(std::string_view* out) const;
  Status as_strings(std::vector<std::string_view>* out) const;
  Status as_f32s(std::vector<float>* out) const;
  Status as_u32s(std::vector<uint32_t>* out) const;

  // Element `index` of an array, as a value of its own. Finding a string takes time in proportion to the index.
  Status element_at(uint64_t index, MetadataValue* out) const;

  // For people: "42", "llama", "[1, 2, 3, ... 32000 values]". At most `max_elements` of an array.
  std::string text(size_t max_elements = 8) const;
};

// Where a tensor's bytes lie.
struct GgufExtent {
  uint32_t piece = 0;   // which source
  uint64_t offset = 0;  // from the start of that source
};

// Opened model: one file or all pieces of a split one. Immutable and thread-safe.
class Gguf {
 public:
  uint32_t version() const { return version_; }
  const std::string& name() const { return sources_[0]->name(); }

  // Metadata in file order. A split model has that of its first piece.
  size_t metadata_count() const { return entries_.size(); }
  MetadataValue metadata(size_t index) const;
  std::optional<MetadataValue> find(std::string_view key) const;

  // Read a key if it is there and leave *value alone if not.
  Status get(std::string_view key, uint32_t* value) const;
  Status get(std::string_view key, float* value) const;
  Status get(std::string_view key, bool* value) const;
  Status get(std::string_view key, std::string* value) const;
  // Read a key that must be there.
  Status require(std::string_view key, uint32_t* value) const;
  Status require(std::string_view key, float* value) const;
  Status require(std::string_view key, std::string* value) const;

  // Tensors of all pieces in file order.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;
  const GgufExtent& extent(size_t tensor) const { return extents_[tensor]; }
  const ByteSource& source(uint32_t piece) const { return *sources_[piece]; }

  // One key as found in the file; offsets into header_.
  struct Entry {
    uint64_t key_offset = 0;
    uint64_t data_offset = 0;
    uint64_t count = 0;
    uint32_t key_bytes = 0;
    GgufType type = GgufType::u8;
    GgufType element = GgufType::u8;
  };

 private:
  friend class GgufLoader;
  uint32_t version_ = 0;
  std::vector<uint8_t> header_;  // the first piece's metadata bytes, which values point into
  std::vector<Entry> entries_;
  std::vector<uint32_t> entries_by_key_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> tensors_by_name_;
  std::vector<GgufExtent> extents_;                         // [tensors]
  std::vector<std::shared_ptr<const ByteSource>> sources_;  // [pieces]
};

// Opens a file; given any piece of a split model ("name-00001-of-00003.gguf"), opens all of them.
Status open_gguf(const std::string& path, FileAccess access, std::shared_ptr<const Gguf>* out);

// Parses sources already at hand, in piece order; one for a model that is not split.
Status parse_gguf(std::vector<std::shared_ptr<const ByteSource>> sources, std::shared_ptr<const Gguf>* out);

}  // namespace kvasir
