// SPDX-License-Identifier: MIT
//
// A cache on the backend under test, filled with random rows by cache_write_rows, and what those rows read as.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "reference/quantize.h"
#include "suite/small_world.h"

namespace kvasir::conformance {

using Bytes = std::vector<unsigned char>;

// Layers 0 and 2 in a group of `k` and `v` with odd head sizes, layer 1 in a second group with pages of its own.
struct CacheWorld {
  static constexpr uint32_t kHeads = 2, kKeyDim = 40, kValueDim = 24, kPages = 4;

  CacheWorld(Subject& subject, TestHost& host, uint32_t k, uint32_t v, uint32_t page_tokens = 4)
      : device(subject.open(host)), queue(device.queue(2)), tokens(page_tokens_near(device, page_tokens)) {
    supported(KVB_QUERY_K_TYPES, k, "keys");
    supported(KVB_QUERY_V_TYPES, v, "values");
    const kvb_cache_group group{k, v, kHeads, kKeyDim, kValueDim, 0, tokens, 0};
    spec = {{group, group}, {0, 1, 0}};
    cache = testing::make_cache(device, queue.get(), spec, {kPages, kPages});
  }

  const kvb_api& api() const { return *device.api; }
  uint32_t type(uint32_t what) const { return what == KVB_ROWS_K ? spec.groups[0].k_type : spec.groups[0].v_type; }
  static uint32_t dim(uint32_t what) { return what == KVB_ROWS_K ? kKeyDim : kValueDim; }
  static uint32_t width(uint32_t what) { return kHeads * dim(what); }

  // Random rows [count][width], of magnitudes around 1.
  std::vector<float> random_rows(uint32_t what, uint32_t count) {
    std::normal_distribution<float> value;
    std::vector<float> rows(size_t{count} * width(what));
    for (float& element : rows) element = value(random);
    return rows;
  }

  Bytes quantize(uint32_t what, const std::vector<float>& rows) const {
    Bytes result;
    for (size_t first = 0; first < rows.size(); first += dim(what)) {
      const Bytes head = quantize_head(type(what), &rows[first], dim(what));
      result.insert(result.end(), head.begin(), head.end());
    }
    return result;
  }
  std::vector<float> dequantize(uint32_t what, const Bytes& bytes) const {
    const size_t head_bytes = quantize_head(type(what), std::vector<float>(dim(what)).data(), dim(what)).size();
    std::vector<float> result;
    for (size_t first = 0; first < bytes.size(); first += head_bytes) {
      const std::vector<float> head = dequantize_head(type(what), &bytes[first], dim(what));
      result.insert(result.end(), head.begin(), head.end());
    }
    return result;
  }
  size_t row_bytes(uint32_t what) const { return quantize(what, std::vector<float>(width(what))).size(); }

  static kvb_cache_rows rows_of(uint32_t layer, uint32_t what, uint32_t format, uint32_t page, uint32_t first,
                                uint32_t count) {
    return {sizeof(kvb_cache_rows), layer, what, format, page, first, count, 0};
  }
  void write(uint32_t layer, uint32_t what, uint32_t page, uint32_t first, const Bytes& bytes) const {
    const auto count = static_cast<uint32_t>(bytes.size() / row_bytes(what));
    const kvb_cache_rows rows = rows_of(layer, what, KVB_FORMAT_STORED, page, first, count);
    succeeds("cache_write_rows", [&](kv_error* e) {
      return api().cache_write_rows(queue.get(), cache.get(), &rows, bytes.data(), bytes.size(), e);
    });
  }
  Bytes read(uint32_t layer, uint32_t what, uint32_t page, uint32_t first, uint32_t count) const {
    Bytes bytes(count * row_bytes(what));
    const kvb_cache_rows rows = rows_of(layer, what, KVB_FORMAT_STORED, page, first, count);
    succeeds("cache_read_rows", [&](kv_error* e) {
      return api().cache_read_rows(queue.get(), cache.get(), &rows, bytes.data(), bytes.size(), e);
    });
    return bytes;
  }
  std::vector<float> read_f32(uint32_t layer, uint32_t what, uint32_t page, uint32_t first, uint32_t count) const {
    return testing::read_cache(device, queue.get(), cache.get(), layer, what, page, first, count, width(what));
  }

  // Writes random rows into every cell; content[layer][what - 1][page] has their bytes.
  void fill() {
    content.assign(3, std::vector<std::vector<Bytes>>(2, std::vector<Bytes>(kPages)));
    for (uint32_t layer = 0; layer < 3; ++layer) {
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        for (uint32_t page = 0; page < kPages; ++page) {
          content[layer][what - 1][page] = quantize(what, random_rows(what, tokens));
          write(layer, what, page, 0, content[layer][what - 1][page]);
        }
      }
    }
  }

  // Every cell of the first `pages` pages holds what `content` says.
  void expect_content(const std::string& when, uint32_t pages = kPages) const {
    for (uint32_t layer = 0; layer < 3; ++layer) {
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        for (uint32_t page = 0; page < pages; ++page) {
          check(read(layer, what, page, 0, tokens) == content[layer][what - 1][page],
                when + ": the " + (what == KVB_ROWS_K ? "keys" : "values") + " of layer " + std::to_string(layer) +
                    ", page " + std::to_string(page) + " are not what they should be");
        }
      }
    }
  }

  TestDevice device;
  Owned<kvb_queue> queue;
  uint32_t tokens;
  testing::CacheSpec spec;
  Owned<kvb_cache> cache;
  std::mt19937 random{7};
  std::vector<std::vector<std::vector<Bytes>>> content;  // [layers][K, V][pages]

 private:
  void supported(uint32_t key, uint32_t type, const char* what) const {
    if ((device.query(key) >> type & 1) == 0) {
      throw Unsupported(std::string("no ") + what + " of type " + type_label(type) + " in a cache");
    }
  }
};

// Cases of cache_move_rows, in cache_move.cpp.
void add_cache_move_cases(std::vector<Case>& cases);

}  // namespace kvasir::conformance
