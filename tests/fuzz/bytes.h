// SPDX-License-Identifier: MIT
//
// Reads values from a fuzzer's input: a cursor that gives zeroes and empty strings once the input has ended. Numbers
// come with a preference for the ones at which programs break. Also require(), which no build leaves out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace kvasir::fuzz {

// What must hold for every input. Aborts, so that libFuzzer keeps the input.
inline void require_that(bool condition, const char* text, const char* file, int line) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
  std::abort();
}
#define KV_REQUIRE(condition) ::kvasir::fuzz::require_that((condition), #condition, __FILE__, __LINE__)

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  template <class T>
  T raw() {
    T value = {};
    const size_t bytes = std::min(sizeof value, rest_.size());
    if (bytes > 0) std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }
  uint8_t u8() { return raw<uint8_t>(); }
  bool flag() { return (u8() & 1) != 0; }
  uint32_t below(uint32_t count) { return u8() % count; }  // count <= 256

  // Mostly small; one in four any of the edges, one in eight any value at all.
  uint64_t number() {
    const uint8_t kind = u8();
    if (kind < 160) return kind % 32;
    if (kind < 192) return raw<uint16_t>();
    if (kind < 224) return raw<uint64_t>();
    constexpr uint64_t kEdges[] = {0x7F,
                                   0xFF,
                                   0x7FFF,
                                   0xFFFF,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   0x100000000,
                                   uint64_t{1} << 40,
                                   uint64_t{1} << 61,
                                   INT64_MAX,
                                   UINT64_MAX};
    return kEdges[kind % std::size(kEdges)];
  }
  uint32_t u32() { return static_cast<uint32_t>(number()); }
  int32_t i32() { return static_cast<int32_t>(number()); }

  float real() {
    using Limits = std::numeric_limits<float>;
    constexpr float kEdges[] = {0.0F,
                                -0.0F,
                                1.0F,
                                -1.0F,
                                0.5F,
                                1e-5F,
                                10000.0F,
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                Limits::max(),
                                Limits::lowest(),
                                Limits::min(),
                                Limits::denorm_min()};
    const uint8_t kind = u8();
    if (kind < 128) return static_cast<float>(kind) / 16.0F - 4.0F;
    return kind < 192 ? kEdges[kind % std::size(kEdges)] : raw<float>();
  }

  // A length byte and that many bytes.
  std::string_view text() {
    const size_t length = u8();
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace kvasir::fuzz
