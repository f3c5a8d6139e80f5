// SPDX-License-Identifier: MIT
//
// A model in several pieces, from memory. Input: per piece 16 bits of length, then the piece. Whatever is accepted must
// be readable to its last byte, wherever it lies. The mutation changes the structure of one piece, or the list.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/gguf_mutator.h"
#include "model/config.h"
#include "model/gguf.h"
#include "model/tensors.h"

namespace {

using namespace kvasir;

std::vector<std::string> pieces_of(const uint8_t* data, size_t size) {
  std::vector<std::string> pieces;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() > 2 && pieces.size() < 8) {
    const size_t length = static_cast<uint8_t>(rest[0]) | static_cast<size_t>(static_cast<uint8_t>(rest[1])) << 8;
    pieces.emplace_back(rest.substr(2, length));
    rest.remove_prefix(2 + pieces.back().size());
  }
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) {
    const size_t length = std::min<size_t>(piece.size(), 0xFFFF);
    all += static_cast<char>(length & 0xFF);
    all += static_cast<char>(length >> 8);
    all += piece.substr(0, length);
  }
  return all;
}

void read_all(const WeightSource& weights) {
  std::vector<uint8_t> data;
  for (size_t i = 0; i < weights.count(); ++i) {
    data.resize(weights.info(i).bytes);
    KV_REQUIRE(weights.read(i, 0, data.data(), data.size()).ok());
    KV_REQUIRE(weights.view(i) != nullptr && std::memcmp(weights.view(i), data.data(), data.size()) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> pieces = pieces_of(data, size);
  std::vector<std::unique_ptr<uint8_t[]>> exact;  // blocks of exactly their size, so that a sanitizer sees their ends
  std::vector<std::shared_ptr<const ByteSource>> sources;
  for (const std::string& piece : pieces) {
    exact.push_back(std::make_unique<uint8_t[]>(piece.size()));
    std::copy(piece.begin(), piece.end(), exact.back().get());
    KV_REQUIRE(
        make_memory_source({exact.back().get(), piece.size()}, MemoryOwnership::borrow, &sources.emplace_back()).ok());
  }
  std::shared_ptr<const Gguf> gguf;
  const Status status = parse_gguf(sources, &gguf);
  KV_REQUIRE(status.ok() == (gguf != nullptr));
  if (!status.ok()) {
    KV_REQUIRE(status.message()[0] != '\0');
    return 0;
  }
  std::shared_ptr<const WeightSource> weights;
  KV_REQUIRE(make_gguf_weights(gguf, &weights).ok());
  read_all(*weights);
  ModelConfig config;
  if (config_from_gguf(*gguf, &config).ok()) (void)check_tensors(config, *weights).ok();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::vector<std::string> pieces = pieces_of(data, size);
  if (pieces.empty()) pieces.emplace_back("GGUF");
  std::mt19937 random(seed);
  const size_t at = random() % pieces.size();
  switch (random() % 8) {
    case 0: std::swap(pieces[at], pieces[random() % pieces.size()]); break;
    case 1: pieces.push_back(pieces[at]); break;
    case 2: pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at)); break;
    default:
      pieces[at] = fuzz::mutate_gguf(reinterpret_cast<const uint8_t*>(pieces[at].data()), pieces[at].size(),
                                     static_cast<uint32_t>(random()));
  }
  const std::string changed = joined(pieces);
  if (changed.empty() || changed.size() > max_size) return size;
  std::copy(changed.begin(), changed.end(), reinterpret_cast<char*>(data));
  return changed.size();
}
