// SPDX-License-Identifier: MIT
//
// MetadataValue: typed access to what the parser has already found to be in bounds.
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstring>

#include "model/gguf.h"
#include "model/gguf_types.h"
#include "model/printable.h"

namespace kvasir {
namespace {

template <typename T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

Status wrong_type(const MetadataValue& value, const char* wanted) {
  const bool array = value.type == GgufType::array;
  return Status::error(KV_CORRUPT, "key '%s' is %s%s, expected %s", printable(value.key).c_str(),
                       array ? "an array of " : "of type ", gguf_value_type_name(array ? value.element : value.type),
                       wanted);
}

// Any integer as sign and 64 bits. False for other types.
struct Integer {
  bool negative = false;
  uint64_t bits = 0;  // two's complement when negative
};

bool load_integer(GgufType type, const uint8_t* data, Integer* out) {
  const auto from_signed = [&](int64_t v) { *out = {v < 0, static_cast<uint64_t>(v)}; };
  switch (type) {
    case GgufType::u8: *out = {false, load<uint8_t>(data)}; return true;
    case GgufType::u16: *out = {false, load<uint16_t>(data)}; return true;
    case GgufType::u32: *out = {false, load<uint32_t>(data)}; return true;
    case GgufType::u64: *out = {false, load<uint64_t>(data)}; return true;
    case GgufType::i8: from_signed(load<int8_t>(data)); return true;
    case GgufType::i16: from_signed(load<int16_t>(data)); return true;
    case GgufType::i32: from_signed(load<int32_t>(data)); return true;
    case GgufType::i64: from_signed(load<int64_t>(data)); return true;
    default: return false;
  }
}

std::string integer_text(const Integer& value) {
  return value.negative ? std::to_string(static_cast<int64_t>(value.bits)) : std::to_string(value.bits);
}

Status out_of_range(const MetadataValue& value, const Integer& integer, const char* wanted) {
  return Status::error(KV_CORRUPT, "key '%s' is %s, expected %s", printable(value.key).c_str(),
                       integer_text(integer).c_str(), wanted);
}

bool load_f64(GgufType type, const uint8_t* data, double* out) {
  if (type == GgufType::f32) {
    *out = static_cast<double>(load<float>(data));
  } else if (type == GgufType::f64) {
    *out = load<double>(data);
  } else {
    return false;
  }
  return true;
}

bool load_f32(GgufType type, const uint8_t* data, float* out) {
  double wide = 0.0;
  if (!load_f64(type, data, &wide)) return false;
  *out = static_cast<float>(wide);
  return true;
}

std::string real_text(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr};
}

// One scalar, for people.
std::string scalar_text(GgufType type, const uint8_t* data) {
  Integer integer;
  float real = 0.0F;
  if (load_integer(type, data, &integer)) return integer_text(integer);
  if (load_f32(type, data, &real)) return real_text(real);
  return *data != 0 ? "true" : "false";
}

}  // namespace

Status MetadataValue::as_u64(uint64_t* out) const {
  Integer integer;
  if (!load_integer(type, data, &integer)) return wrong_type(*this, "an integer");
  if (integer.negative) return out_of_range(*this, integer, "no negative number");
  *out = integer.bits;
  return {};
}

Status MetadataValue::as_u32(uint32_t* out) const {
  Integer integer;
  if (!load_integer(type, data, &integer)) return wrong_type(*this, "an integer");
  if (integer.negative || integer.bits > UINT32_MAX) return out_of_range(*this, integer, "a number of 32 bits");
  *out = static_cast<uint32_t>(integer.bits);
  return {};
}

Status MetadataValue::as_i64(int64_t* out) const {
  Integer integer;
  if (!load_integer(type, data, &integer)) return wrong_type(*this, "an integer");
  if (!integer.negative && integer.bits > INT64_MAX) return out_of_range(*this, integer, "a number of 63 bits");
  *out = static_cast<int64_t>(integer.bits);
  return {};
}

Status MetadataValue::as_f32(float* out) const {
  return load_f32(type, data, out) ? Status() : wrong_type(*this, "a floating-point number");
}

Status MetadataValue::as_f64(double* out) const {
  return load_f64(type, data, out) ? Status() : wrong_type(*this, "a floating-point number");
}

Status MetadataValue::element_at(uint64_t index, MetadataValue* out) const {
  KV_CHECK(type == GgufType::array, KV_INVALID_ARGUMENT, "key '%s' is no array", printable(key).c_str());
  KV_CHECK(index < count, KV_INVALID_ARGUMENT, "element %" PRIu64 " of key '%s', which has %" PRIu64, index,
           printable(key).c_str(), count);
  KV_CHECK(element != GgufType::array, KV_UNSUPPORTED, "key '%s' is an array of arrays", printable(key).c_str());
  MetadataValue value = {key, element, element, 1, data};
  if (element == GgufType::string) {
    for (uint64_t i = 0; i < index; ++i) value.data += sizeof(uint64_t) + load<uint64_t>(value.data);
    value.count = load<uint64_t>(value.data);
    value.data += sizeof(uint64_t);
  } else {
    value.data += index * gguf_scalar_bytes(element);
  }
  *out = value;
  return {};
}

Status MetadataValue::as_bool(bool* out) const {
  if (type != GgufType::boolean) return wrong_type(*this, "a boolean");
  KV_CHECK(*data <= 1, KV_CORRUPT, "key '%s' is %d, expected a boolean of 0 or 1", printable(key).c_str(), *data);
  *out = *data == 1;
  return {};
}

Status MetadataValue::as_string(std::string_view* out) const {
  if (type != GgufType::string) return wrong_type(*this, "a string");
  *out = {reinterpret_cast<const char*>(data), static_cast<size_t>(count)};
  return {};
}

Status MetadataValue::as_strings(std::vector<std::string_view>* out) const {
  if (type != GgufType::array || element != GgufType::string) return wrong_type(*this, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(count);
  const uint8_t* at = data;
  for (uint64_t i = 0; i < count; ++i) {
    const auto bytes = load<uint64_t>(at);
    strings.emplace_back(reinterpret_cast<const char*>(at + sizeof bytes), static_cast<size_t>(bytes));
    at += sizeof bytes + bytes;
  }
  out->swap(strings);
  return {};
}

Status MetadataValue::as_f32s(std::vector<float>* out) const {
  if (type != GgufType::array || (element != GgufType::f32 && element != GgufType::f64)) {
    return wrong_type(*this, "an array of floating-point numbers");
  }
  std::vector<float> values(count);
  const uint64_t step = gguf_scalar_bytes(element);
  for (uint64_t i = 0; i < count; ++i) load_f32(element, data + i * step, &values[i]);
  out->swap(values);
  return {};
}

Status MetadataValue::as_u32s(std::vector<uint32_t>* out) const {
  const uint64_t step = type == GgufType::array ? gguf_scalar_bytes(element) : 0;
  Integer integer;
  if (step == 0) return wrong_type(*this, "an array of integers");
  std::vector<uint32_t> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (!load_integer(element, data + i * step, &integer)) return wrong_type(*this, "an array of integers");
    if (integer.negative || integer.bits > UINT32_MAX) return out_of_range(*this, integer, "numbers of 32 bits");
    values[i] = static_cast<uint32_t>(integer.bits);
  }
  out->swap(values);
  return {};
}

std::string MetadataValue::text(size_t max_elements) const {
  if (type == GgufType::string) return {reinterpret_cast<const char*>(data), static_cast<size_t>(count)};
  if (type != GgufType::array) return scalar_text(type, data);
  std::string text = "[";
  const uint8_t* at = data;
  const uint64_t shown = element == GgufType::array ? 0 : std::min<uint64_t>(count, max_elements);
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) text += ", ";
    if (element == GgufType::string) {
      const auto bytes = load<uint64_t>(at);
      text.append(reinterpret_cast<const char*>(at + sizeof bytes), static_cast<size_t>(bytes));
      at += sizeof bytes + bytes;
    } else {
      text += scalar_text(element, at);
      at += gguf_scalar_bytes(element);
    }
  }
  if (shown < count) {
    text += shown > 0 ? ", ... " : "";
    text += std::to_string(count) + (element == GgufType::array ? " arrays" : " values");
  }
  return text + "]";
}

}  // namespace kvasir
