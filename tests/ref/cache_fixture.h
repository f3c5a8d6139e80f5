// SPDX-License-Identifier: MIT
//
// For tests of cache rows: a cache of two layers, calls with their status, rows stored by a program.
#pragma once

#include <string>
#include <vector>

#include "ref_fixture.h"

namespace kvasir::testing {

class CacheTest : public RefTest {
 protected:
  // K and V of `type`: one head of `dim`, two layers, pages of four tokens.
  static CacheSpec spec(uint32_t type, uint32_t dim) { return one_group(2, {type, type, 1, dim, dim, 0, 4, 0}); }

  // Stores `rows` [n][2 * dim] (k, then v) at positions from 0 in layer `layer`.
  void store(const CacheSpec& cache_spec, kvb_cache* cache, uint32_t layer, const std::vector<float>& rows,
             std::vector<uint32_t> pages) {
    const uint32_t dim = cache_spec.groups[0].k_dim;
    ProgramBuilder builder;
    const uint32_t x = builder.tokens(2 * dim), k = builder.tokens(dim), v = builder.tokens(dim);
    builder.op(KVB_OP_EMBED, {}, {x});
    builder.op(KVB_OP_COPY_HEADS, {x}, {k}, {1, 0, 0, dim, 1});
    builder.op(KVB_OP_COPY_HEADS, {x}, {v}, {1, dim, 0, dim, 1});
    builder.op(KVB_OP_KV_STORE, {k, v}, {}, {layer});
    builder.op(KVB_OP_SELECT_ROWS, {k}, {builder.output(dim)});
    const TestProgram program(device, builder, cache_spec);
    TestSequence sequence{0, {std::move(pages)}};
    StepData step;
    std::vector<int32_t> ids;
    for (auto row = rows.begin(); row != rows.end(); row += 2 * dim) ids.push_back(step.embed({row, row + 2 * dim}));
    step.append(sequence, ids);
    run_step(device, queue.get(), program, cache, step);
  }

  kv_status read(kvb_cache* cache, kvb_cache_rows rows, void* data, uint64_t bytes) {
    return api().cache_read_rows(queue.get(), cache, &rows, data, bytes, &error);
  }
  kv_status write(kvb_cache* cache, kvb_cache_rows rows, const void* data, uint64_t bytes) {
    return api().cache_write_rows(queue.get(), cache, &rows, data, bytes, &error);
  }
  static kvb_cache_rows rows_of(uint32_t layer, uint32_t what, uint32_t format, uint32_t page, uint32_t first,
                                uint32_t count) {
    return {sizeof(kvb_cache_rows), layer, what, format, page, first, count, 0};
  }

  std::vector<unsigned char> stored(kvb_cache* cache, uint32_t layer, uint32_t what, uint32_t page, uint32_t first,
                                    uint32_t count, size_t bytes) {
    std::vector<unsigned char> data(bytes);
    EXPECT_EQ(read(cache, rows_of(layer, what, KVB_FORMAT_STORED, page, first, count), data.data(), bytes), KV_OK)
        << error.message;
    return data;
  }

  kv_error error{};
};

}  // namespace kvasir::testing
