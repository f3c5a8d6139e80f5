// SPDX-License-Identifier: MIT
//
// Tensor records, and the two WeightSources: over an opened GGUF model, and over tensors of the caller.
#include "model/weights.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "model/gguf.h"
#include "model/printable.h"
#include "model/types.h"

namespace kvasir {
namespace {

constexpr size_t kMaxTensorName = 255;

}  // namespace

std::string dims_text(const TensorInfo& info) {
  std::string text = "[";
  for (uint32_t i = 0; i < info.dim_count && i < 4; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(info.dims[i]);
  }
  return text + "]";
}

Status complete_tensor_info(TensorInfo* info) {
  const std::string printed = printable(info->name);
  const char* name = printed.c_str();
  KV_CHECK(!info->name.empty(), KV_INVALID_ARGUMENT, "a tensor has an empty name");
  KV_CHECK(info->name.size() <= kMaxTensorName, KV_INVALID_ARGUMENT,
           "the name of tensor '%s' has %zu bytes, at most %zu are possible", name, info->name.size(), kMaxTensorName);
  KV_CHECK(info->name.find('\0') == std::string::npos, KV_INVALID_ARGUMENT, "the name of tensor '%s' holds a zero byte",
           name);
  const TypeInfo* type = type_info(info->type);
  KV_CHECK(type != nullptr, KV_INVALID_ARGUMENT, "tensor '%s' has unknown type %" PRIu32, name, info->type);
  KV_CHECK(info->dim_count >= 1 && info->dim_count <= 4, KV_INVALID_ARGUMENT,
           "tensor '%s' has %" PRIu32 " dimensions, between 1 and 4 are possible", name, info->dim_count);
  for (uint32_t i = info->dim_count; i < 4; ++i) info->dims[i] = 1;
  uint64_t rows = 1;
  bool fits = true;
  for (uint32_t i = 0; i < 4; ++i) {
    KV_CHECK(info->dims[i] > 0, KV_INVALID_ARGUMENT, "tensor '%s' is %s: dimension %" PRIu32 " is zero", name,
             dims_text(*info).c_str(), i);
    if (i > 0) fits = fits && checked_mul(rows, info->dims[i], &rows);
  }
  KV_CHECK(info->dims[0] % type->block_values == 0, KV_INVALID_ARGUMENT,
           "tensor '%s' has rows of %" PRIu64 " values, type %s needs a multiple of %" PRIu32, name, info->dims[0],
           type->name, type->block_values);
  uint64_t row = 0;
  uint64_t bytes = 0;
  fits = fits && row_bytes(info->type, info->dims[0], &row) && checked_mul(rows, row, &bytes);
  // Sizes stay in the range of pointer differences.
  KV_CHECK(fits && bytes <= static_cast<uint64_t>(INT64_MAX), KV_INVALID_ARGUMENT,
           "tensor '%s' is %s: its size does not fit 63 bits", name, dims_text(*info).c_str());
  info->rows = rows;
  info->row_bytes = row;
  info->bytes = bytes;
  return {};
}

std::optional<size_t> WeightSource::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](uint32_t index, std::string_view key) { return tensors_[index].name < key; });
  if (at == by_name_.end() || tensors_[*at].name != name) return std::nullopt;
  return *at;
}

Status WeightSource::set_tensors(std::vector<TensorInfo> tensors) {
  KV_CHECK(tensors.size() <= UINT32_MAX, KV_INVALID_ARGUMENT, "%zu tensors are too many", tensors.size());
  std::vector<uint32_t> by_name(tensors.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::sort(by_name.begin(), by_name.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < by_name.size(); ++i) {
    const std::string& name = tensors[by_name[i]].name;
    KV_CHECK(tensors[by_name[i - 1]].name != name, KV_INVALID_ARGUMENT, "tensor '%s' is there twice",
             printable(name).c_str());
  }
  tensors_ = std::move(tensors);
  by_name_ = std::move(by_name);
  return {};
}

namespace {

// A read of a part of a tensor must stay inside it, wherever the tensor lies.
Status check_part(const TensorInfo& info, uint64_t offset, uint64_t bytes) {
  KV_CHECK(range_fits(offset, bytes, info.bytes), KV_INVALID_ARGUMENT,
           "cannot read %" PRIu64 " bytes at %" PRIu64 " of tensor '%s', which has %" PRIu64, bytes, offset,
           printable(info.name).c_str(), info.bytes);
  return {};
}

class GgufWeights final : public WeightSource {
 public:
  explicit GgufWeights(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

  Status init() { return set_tensors(gguf_->tensors()); }

  Status read(size_t index, uint64_t offset, void* destination, uint64_t bytes) const override {
    KV_RETURN_IF_ERROR(check_part(info(index), offset, bytes));
    const GgufExtent& extent = gguf_->extent(index);
    return gguf_->source(extent.piece).read(extent.offset + offset, destination, bytes);
  }

  const uint8_t* view(size_t index) const override {
    const GgufExtent& extent = gguf_->extent(index);
    return gguf_->source(extent.piece).view(extent.offset, info(index).bytes);
  }

 private:
  std::shared_ptr<const Gguf> gguf_;
};

class MemoryWeights final : public WeightSource {
 public:
  explicit MemoryWeights(std::vector<OwnedTensor> tensors) : owned_(std::move(tensors)) {}

  Status init() {
    std::vector<TensorInfo> infos;
    infos.reserve(owned_.size());
    for (const OwnedTensor& tensor : owned_) infos.push_back(tensor.info);
    return set_tensors(std::move(infos));
  }

  Status read(size_t index, uint64_t offset, void* destination, uint64_t bytes) const override {
    KV_RETURN_IF_ERROR(check_part(info(index), offset, bytes));
    if (bytes > 0) std::memcpy(destination, owned_[index].data + offset, bytes);
    return {};
  }

  const uint8_t* view(size_t index) const override { return owned_[index].data; }

 private:
  std::vector<OwnedTensor> owned_;
};

}  // namespace

Status make_gguf_weights(std::shared_ptr<const Gguf> gguf, std::shared_ptr<const WeightSource>* out) {
  auto weights = std::make_shared<GgufWeights>(std::move(gguf));
  KV_RETURN_IF_ERROR(weights->init());
  *out = std::move(weights);
  return {};
}

Status WeightsBuilder::add(TensorInfo info, const void* data, uint64_t data_bytes, MemoryOwnership ownership) {
  KV_RETURN_IF_ERROR(complete_tensor_info(&info));
  KV_CHECK(data != nullptr, KV_INVALID_ARGUMENT, "the data of tensor '%s' is null", printable(info.name).c_str());
  KV_CHECK(data_bytes == info.bytes, KV_INVALID_ARGUMENT,
           "tensor '%s' is %s of type %s and needs %" PRIu64 " bytes, %" PRIu64 " were given",
           printable(info.name).c_str(), dims_text(info).c_str(), type_name(info.type), info.bytes, data_bytes);
  for (const OwnedTensor& other : tensors_) {
    KV_CHECK(other.info.name != info.name, KV_INVALID_ARGUMENT, "tensor '%s' is there twice",
             printable(info.name).c_str());
  }
  OwnedTensor tensor;
  tensor.data = static_cast<const uint8_t*>(data);
  if (ownership == MemoryOwnership::copy) {
    auto copy = std::make_unique_for_overwrite<uint8_t[]>(data_bytes);
    std::memcpy(copy.get(), data, data_bytes);
    tensor.copy = std::move(copy);
    tensor.data = tensor.copy.get();
  }
  tensor.info = std::move(info);
  tensors_.push_back(std::move(tensor));
  return {};
}

Status WeightsBuilder::build(std::shared_ptr<const WeightSource>* out) const {
  auto weights = std::make_shared<MemoryWeights>(tensors_);
  KV_RETURN_IF_ERROR(weights->init());
  *out = std::move(weights);
  return {};
}

}  // namespace kvasir
