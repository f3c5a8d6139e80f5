// SPDX-License-Identifier: MIT
//
// Named tensors of a model, wherever they come from: a GGUF file, a memory buffer, tensors handed to the builder.
// Names are GGUF's ("blk.0.attn_q.weight"). What the tensors mean and which must exist is tensors.h's business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/source.h"

namespace kvasir {

class Gguf;

struct TensorInfo {
  std::string name;
  uint32_t type = 0;                // KV_TYPE_*
  uint32_t dim_count = 0;           // 1..4
  uint64_t dims[4] = {1, 1, 1, 1};  // dims[0] is the row length ("in"), dims[1] the number of rows ("out")
  uint64_t row_bytes = 0;           // of dims[0] values
  uint64_t rows = 0;                // dims[1] * dims[2] * dims[3]
  uint64_t bytes = 0;               // rows * row_bytes
};

// Checks name, type and dims and fills row_bytes, rows and bytes. The sentence names the tensor.
Status complete_tensor_info(TensorInfo* info);

// "[64, 512]"
std::string dims_text(const TensorInfo& info);

// Immutable and thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  size_t count() const { return tensors_.size(); }
  const TensorInfo& info(size_t index) const { return tensors_[index]; }
  std::optional<size_t> find(std::string_view name) const;

  // Copies bytes [offset, offset + bytes) of a tensor's data; a whole tensor is (0, info(index).bytes).
  virtual Status read(size_t index, uint64_t offset, void* destination, uint64_t bytes) const = 0;

  // The tensor's data in place, valid while this source lives and aligned to nothing; null when it is not in memory.
  virtual const uint8_t* view(size_t index) const = 0;

 protected:
  // Names must be distinct; the sentence names the first that is not.
  Status set_tensors(std::vector<TensorInfo> tensors);

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;  // indices, sorted by name
};

// The tensors of an opened GGUF model; keeps it alive and reads on demand.
Status make_gguf_weights(std::shared_ptr<const Gguf> gguf, std::shared_ptr<const WeightSource>* out);

// One tensor of the caller and its bytes; `copy` is null when they are borrowed.
struct OwnedTensor {
  TensorInfo info;
  std::shared_ptr<const uint8_t[]> copy;
  const uint8_t* data = nullptr;
};

// Collects tensors of the caller. One thread at a time.
class WeightsBuilder {
 public:
  // `info` needs name, type, dim_count and dims. `data_bytes` must be exactly what they ask for, the name a new one.
  Status add(TensorInfo info, const void* data, uint64_t data_bytes, MemoryOwnership ownership);

  // What was added so far; shares the bytes with the builder.
  Status build(std::shared_ptr<const WeightSource>* out) const;
  void clear() { tensors_.clear(); }

 private:
  std::vector<OwnedTensor> tensors_;
};

}  // namespace kvasir
