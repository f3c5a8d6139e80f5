// SPDX-License-Identifier: MIT
//
// A GGUF file as lists of keys and tensors that can be changed one by one and written back whole: what the
// structure-aware mutation works on. Reads leniently and by itself, not through the parser under test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::fuzz {

struct GgufKey {
  std::string name;
  uint32_t type = 0;    // as in the file
  std::string payload;  // the encoded value: a string with its length, an array with element type and count
};

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> dims;
  uint32_t type = 0;       // as in the file
  uint64_t displaced = 0;  // added to the offset that is right
  std::string data;

  // Makes the data as long as name and shape ask for, unless that is too long for a fuzzer.
  void fit_data();
};

struct GgufDocument {
  uint32_t version = 3;
  uint64_t extra_keys = 0;  // added to the counts of the header
  uint64_t extra_tensors = 0;
  std::vector<GgufKey> keys;
  std::vector<GgufTensor> tensors;

  // False when the bytes are no GGUF file from front to end.
  static bool parse(const uint8_t* data, size_t size, GgufDocument* out);
  std::string write() const;

 private:
  uint64_t alignment() const;
};

// Bytes of a scalar of that GGUF value type; 0 for strings, arrays and unknown types.
uint64_t scalar_bytes(uint32_t type);

// The elements of an array payload: scalars without, strings with their length. Empty when it is another value.
std::vector<std::string> array_elements(const std::string& payload);
// And back.
std::string array_payload(uint32_t element_type, uint64_t count, const std::vector<std::string>& elements);

}  // namespace kvasir::fuzz
