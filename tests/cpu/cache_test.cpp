// SPDX-License-Identifier: MIT
//
// The cache through the ABI: rows as ref stores them, copies, resizing, poison, and decoding at the edge of pages.
#include <gtest/gtest.h>

#include <limits>

#include "random_model.h"

namespace kvasir::testing {
namespace {

constexpr uint32_t kCacheTypes[] = {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0};

// A program that only stores: rows of embeddings become keys and values of layer 0.
struct StoreRig {
  StoreRig(const char* backend, uint32_t type, uint32_t heads, uint32_t dim, uint32_t page_tokens)
      : device(query_of(backend), host),
        queue(device.queue()),
        spec(one_group(1, {type, type, heads, dim, dim, 0, page_tokens, 0})),
        width(heads * dim) {
    ProgramBuilder builder(Limits{64, 1, 1, 64});
    const uint32_t x = builder.tokens(width);
    builder.op(KVB_OP_EMBED, {}, {x});
    builder.op(KVB_OP_KV_STORE, {x, x}, {}, {0});
    builder.op(KVB_OP_SELECT_ROWS, {x}, {builder.output(width)});
    program = std::make_unique<TestProgram>(device, builder, spec);
    cache = make_cache(device, queue.get(), spec, {kPages});
    for (uint32_t page = 0; page < kPages; page++) sequence.pages[0].push_back(kPages - 1 - page);
  }

  void store(const std::vector<float>& rows) {
    StepData step;
    std::vector<int32_t> ids;
    for (auto row = rows.begin(); row != rows.end(); row += width) ids.push_back(step.embed({row, row + width}));
    step.append(sequence, ids);
    run_step(device, queue.get(), *program, cache.get(), step);
  }

  // Rows in `format` from page of position `first` on; all in one page.
  std::vector<unsigned char> read(uint32_t what, uint32_t format, uint32_t page, uint32_t first, uint32_t count) {
    kv_error error{};
    const kvb_cache_group& group = spec.groups[0];
    const uint64_t bytes = format == KVB_FORMAT_F32
                               ? uint64_t{width} * 4 * count
                               : sdk::padded_bytes(group.k_type, group.k_dim) * group.kv_heads * count;
    std::vector<unsigned char> data(bytes);
    const kvb_cache_rows rows{sizeof rows, 0, what, format, page, first, count, 0};
    expect_ok(device.api->cache_read_rows(queue.get(), cache.get(), &rows, data.data(), bytes, &error), error, "read");
    return data;
  }

  static constexpr uint32_t kPages = 64;
  TestHost host;
  TestDevice device;
  Owned<kvb_queue> queue;
  CacheSpec spec;
  uint32_t width;
  std::unique_ptr<TestProgram> program;
  Owned<kvb_cache> cache;
  TestSequence sequence{0, {{}}};
};

TEST(Cache, StoresTheBytesOfTheReference) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const uint32_t type : kCacheTypes) {
    for (const uint32_t dim : {1u, 8u, 20u, 33u, 64u, 80u}) {
      for (const uint32_t page_tokens : {1u, 4u, 20u, 64u}) {
        SCOPED_TRACE(std::string(sdk::type_name(type)) + ", " + std::to_string(dim) + ", pages of " +
                     std::to_string(page_tokens));
        std::vector<float> rows = RandomWeights(dim).vector(30 * 2 * dim, 0, 1);
        rows[0] = 0, rows[1] = -0.0f, rows[rows.size() / 2] = inf, rows.back() = -70000;
        StoreRig cpu("cpu", type, 2, dim, page_tokens), ref("ref", type, 2, dim, page_tokens);
        cpu.store(rows);
        ref.store(rows);
        const uint32_t used = (30 + page_tokens - 1) / page_tokens;
        for (uint32_t i = 0; i < used; i++) {
          const uint32_t count = std::min(page_tokens, 30 - i * page_tokens), page = StoreRig::kPages - 1 - i;
          for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
            EXPECT_EQ(cpu.read(what, KVB_FORMAT_STORED, page, 0, count),
                      ref.read(what, KVB_FORMAT_STORED, page, 0, count));
            // The NaN of a broken block of q8_0 may differ in its payload.
            if (type == KV_TYPE_Q8_0) continue;
            EXPECT_EQ(cpu.read(what, KVB_FORMAT_F32, page, 0, count), ref.read(what, KVB_FORMAT_F32, page, 0, count));
          }
        }
      }
    }
  }
}

TEST(Cache, WrittenRowsAreReadBack) {
  for (const uint32_t type : kCacheTypes) {
    for (const uint32_t page_tokens : {1u, 5u, 40u}) {
      StoreRig from("cpu", type, 3, 20, page_tokens), to("cpu", type, 3, 20, page_tokens);
      const uint32_t count = std::min(page_tokens, 30u), page = StoreRig::kPages - 1;
      from.store(RandomWeights(4).vector(30 * 3 * 20, 0, 1));
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        kv_error error{};
        const std::vector<unsigned char> data = from.read(what, KVB_FORMAT_STORED, page, 0, count);
        const kvb_cache_rows rows{sizeof rows, 0, what, KVB_FORMAT_STORED, 7, 0, count, 0};
        ASSERT_EQ(
            to.device.api->cache_write_rows(to.queue.get(), to.cache.get(), &rows, data.data(), data.size(), &error),
            KV_OK)
            << error.message;
        EXPECT_EQ(to.read(what, KVB_FORMAT_STORED, 7, 0, count), data);
      }
    }
  }
}

// Places and positions of rows change in one call: overlapping runs, several pages, rows that stay where they are.
TEST(Cache, MovesRowsAsTheReferenceDoes) {
  struct {
    kvb_rope header;
    double frequency[5];
  } const rope{{KVB_ROPE_HALVES, 2, 5, 1.0f}, {1.0, 0.3, 0.1, 0.03, 0.01}};
  const kvb_rope* const turned[] = {&rope.header};
  const uint32_t last = StoreRig::kPages - 1;
  const kvb_cache_move moves[] = {
      {last, 0, last, 7, 1, 7}, {last, 2, last, 1, 5, -1}, {last - 1, 3, last, 8, 4, -11}, {last, 7, last, 0, 1, 0}};
  for (const uint32_t type : kCacheTypes) {
    for (const kvb_rope* const* ropes : {static_cast<const kvb_rope* const*>(nullptr), turned}) {
      SCOPED_TRACE(std::string(sdk::type_name(type)) + (ropes == nullptr ? "" : ", turned"));
      std::vector<std::vector<unsigned char>> seen;
      for (const char* backend : {"cpu", "ref"}) {
        StoreRig rig(backend, type, 2, 20, 12);
        rig.store(RandomWeights(9).vector(24 * 2 * 20, 0, 1));
        kv_error error{};
        ASSERT_EQ(rig.device.api->cache_move_rows(rig.queue.get(), rig.cache.get(), 0, moves, 4, ropes, &error), KV_OK)
            << error.message;
        for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
          seen.push_back(rig.read(what, KVB_FORMAT_STORED, last, 0, 12));
          seen.push_back(rig.read(what, KVB_FORMAT_STORED, last - 1, 0, 12));
        }
      }
      for (size_t i = 0; i < 4; i++) EXPECT_EQ(seen[i], seen[i + 4]) << i;
    }
  }
}

TEST(Cache, RefusesMovesWhole) {
  StoreRig rig("cpu", KV_TYPE_F16, 2, 20, 12);
  rig.store(RandomWeights(9).vector(12 * 2 * 20, 0, 1));
  const auto before = rig.read(KVB_ROWS_K, KVB_FORMAT_STORED, StoreRig::kPages - 1, 0, 12);
  const auto move = [&](const std::vector<kvb_cache_move>& moves, const kvb_rope* const* rope, kv_error& error) {
    return rig.device.api->cache_move_rows(rig.queue.get(), rig.cache.get(), 0, moves.data(),
                                           static_cast<uint32_t>(moves.size()), rope, &error);
  };
  const uint32_t last = StoreRig::kPages - 1;
  kv_error error{};
  EXPECT_EQ(move({{last, 0, last, 1, 1, 0}, {0, 0, StoreRig::kPages, 0, 1, 0}}, nullptr, error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error.message), "page 64 of 64");
  EXPECT_EQ(move({{last, 11, last, 0, 2, 0}}, nullptr, error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error.message), "rows 11 to 13 of a page of 12 tokens");
  const kvb_rope wide{KVB_ROPE_ADJACENT, 0, 11, 1.0f};
  const kvb_rope* const ropes[] = {&wide};
  EXPECT_EQ(move({{last, 0, last, 1, 1, 1}}, ropes, error), KV_INVALID_ARGUMENT);
  rig.host.calls_until_failure = 0;
  EXPECT_EQ(move({{last, 0, last, 1, 1, 0}}, nullptr, error), KV_OUT_OF_MEMORY);
  rig.host.calls_until_failure = -1;
  EXPECT_EQ(rig.read(KVB_ROWS_K, KVB_FORMAT_STORED, last, 0, 12), before);
  EXPECT_EQ(move({}, nullptr, error), KV_OK);
}

TEST(Cache, CopiedRowsAndOnlyThose) {
  for (const uint32_t type : kCacheTypes) {
    StoreRig rig("cpu", type, 2, 20, 40);
    kv_error error{};
    rig.store(RandomWeights(4).vector(30 * 2 * 20, 0, 1));
    const uint32_t from = StoreRig::kPages - 1, to = 3;
    ASSERT_EQ(rig.device.api->cache_poison_page(rig.queue.get(), rig.cache.get(), 0, to, &error), KV_OK);
    const auto poisoned = rig.read(KVB_ROWS_K, KVB_FORMAT_STORED, to, 0, 40);
    ASSERT_EQ(rig.device.api->cache_copy_rows(rig.queue.get(), rig.cache.get(), 0, from, to, 5, 20, &error), KV_OK);
    for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
      EXPECT_EQ(rig.read(what, KVB_FORMAT_STORED, to, 5, 20), rig.read(what, KVB_FORMAT_STORED, from, 5, 20));
      const auto head = rig.read(what, KVB_FORMAT_STORED, to, 0, 5),
                 tail = rig.read(what, KVB_FORMAT_STORED, to, 25, 15);
      EXPECT_TRUE(std::equal(head.begin(), head.end(), poisoned.begin()));
      EXPECT_TRUE(std::equal(tail.begin(), tail.end(), poisoned.begin()));
    }
    ASSERT_EQ(rig.device.api->cache_copy_rows(rig.queue.get(), rig.cache.get(), 0, from, to, 0, 40, &error), KV_OK);
    EXPECT_EQ(rig.read(KVB_ROWS_V, KVB_FORMAT_STORED, to, 0, 30), rig.read(KVB_ROWS_V, KVB_FORMAT_STORED, from, 0, 30));
  }
}

TEST(Cache, PoisonReadsAsNaN) {
  for (const uint32_t type : kCacheTypes) {
    StoreRig rig("cpu", type, 1, 20, 16);
    kv_error error{};
    ASSERT_EQ(rig.device.api->cache_poison_page(rig.queue.get(), rig.cache.get(), 0, 2, &error), KV_OK);
    for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
      for (const float x : read_cache(rig.device, rig.queue.get(), rig.cache.get(), 0, what, 2, 0, 16, 20))
        ASSERT_TRUE(std::isnan(x)) << sdk::type_name(type);
    }
  }
}

TEST(Cache, ResizeKeepsWhatStaysAndIsAllOrNothing) {
  StoreRig rig("cpu", KV_TYPE_F16, 1, 20, 16);
  kv_error error{};
  const kvb_api& api = *rig.device.api;
  rig.store(RandomWeights(4).vector(30 * 20, 0, 1));
  const uint32_t first = StoreRig::kPages - 1;
  const auto before = rig.read(KVB_ROWS_K, KVB_FORMAT_STORED, first, 0, 16);
  const uint64_t used = rig.device.query(KVB_QUERY_MEMORY_USED);
  uint32_t count = 200;
  rig.host.calls_until_failure = 50;
  EXPECT_EQ(api.cache_resize(rig.queue.get(), rig.cache.get(), &count, &error), KV_OUT_OF_MEMORY);
  rig.host.calls_until_failure = -1;
  EXPECT_EQ(rig.device.query(KVB_QUERY_MEMORY_USED), used);
  EXPECT_EQ(rig.host.live_bytes, used);
  ASSERT_EQ(api.cache_resize(rig.queue.get(), rig.cache.get(), &count, &error), KV_OK);
  EXPECT_EQ(rig.read(KVB_ROWS_K, KVB_FORMAT_STORED, first, 0, 16), before);

  const kvb_cache_desc desc = rig.spec.desc();
  kvb_memory memory{sizeof memory, 0, 0, 0}, small = memory;
  ASSERT_EQ(api.cache_memory(rig.device.get(), &desc, &count, &memory, &error), KV_OK);
  const uint32_t old = StoreRig::kPages;
  ASSERT_EQ(api.cache_memory(rig.device.get(), &desc, &old, &small, &error), KV_OK);
  EXPECT_EQ(rig.device.query(KVB_QUERY_MEMORY_USED) - used, memory.device_bytes - small.device_bytes);
  count = 0;
  ASSERT_EQ(api.cache_resize(rig.queue.get(), rig.cache.get(), &count, &error), KV_OK);
  EXPECT_EQ(rig.device.query(KVB_QUERY_MEMORY_USED), used - small.device_bytes);
}

TEST(Cache, RowsOutsideAreRefused) {
  StoreRig rig("cpu", KV_TYPE_F16, 1, 8, 16);
  kv_error error{};
  const kvb_api& api = *rig.device.api;
  unsigned char data[4096];
  const auto status = [&](kvb_cache_rows rows, uint64_t bytes) {
    return api.cache_read_rows(rig.queue.get(), rig.cache.get(), &rows, data, bytes, &error);
  };
  const kvb_cache_rows good{sizeof good, 0, KVB_ROWS_K, KVB_FORMAT_STORED, 0, 0, 16, 0};
  EXPECT_EQ(status(good, 16 * 16), KV_OK);
  EXPECT_EQ(status(good, 16 * 16 - 1), KV_INVALID_ARGUMENT);
  kvb_cache_rows rows = good;
  rows.page = StoreRig::kPages;
  EXPECT_EQ(status(rows, 16 * 16), KV_INVALID_ARGUMENT);
  rows = good, rows.first = 1;
  EXPECT_EQ(status(rows, 16 * 16), KV_INVALID_ARGUMENT);
  rows = good, rows.first = UINT32_MAX, rows.count = 2;
  EXPECT_EQ(status(rows, 2 * 16), KV_INVALID_ARGUMENT);
  rows = good, rows.layer = 1;
  EXPECT_EQ(status(rows, 16 * 16), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api.cache_copy_rows(rig.queue.get(), rig.cache.get(), 0, 0, 99, 0, 1, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api.cache_copy_rows(rig.queue.get(), rig.cache.get(), 1, 0, 0, 0, 1, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api.cache_poison_page(rig.queue.get(), rig.cache.get(), 0, 99, &error), KV_INVALID_ARGUMENT);
}

// Case P06: whatever unowned cells hold, NaN or infinity, nothing of it arrives.
TEST(Cache, UnownedCellsNeverReachAnOutput) {
  for (const uint32_t type : kCacheTypes) {
    for (const uint32_t page_tokens : {1u, 16u, 100u, 256u}) {
      SCOPED_TRACE(std::string(sdk::type_name(type)) + ", pages of " + std::to_string(page_tokens));
      ModelShape shape;
      shape.k_type = shape.v_type = type;
      shape.page_tokens = page_tokens;
      const auto tokens = random_tokens(9, shape.vocab, 2);
      Rig clean(shape), poisoned(shape);
      poisoned.poison_all();
      for (Rig* rig : {&clean, &poisoned}) {
        rig->run(0, {tokens[0], tokens[1], tokens[2]});
        for (int i = 3; i < 6; i++) rig->run(0, {tokens[static_cast<size_t>(i)]});
        rig->truncate(0, 2);
      }
      for (size_t i = 6; i < 9; i++) {
        const std::vector<float> want = clean.run(0, {tokens[i]});
        for (const float x : want) ASSERT_TRUE(std::isfinite(x));
        ASSERT_TRUE(same_bits(poisoned.run(0, {tokens[i]}), want));
      }
    }
  }
}

// A later token of the same step that is NaN does not reach the tokens before it.
TEST(Cache, ABrokenTokenLeavesEarlierOnesAlone) {
  ModelShape shape;
  Rig alone(shape), together(shape);
  const auto tokens = random_tokens(6, shape.vocab, 2);
  const std::vector<float> want = alone.run(0, tokens, true);
  StepData step;
  TestSequence& sequence = together.sequence(0);
  sequence.pages[0] = {0};
  std::vector<int32_t> ids = tokens;
  ids.push_back(step.embed(std::vector<float>(shape.dim, std::numeric_limits<float>::quiet_NaN())));
  step.append(sequence, ids, true);
  std::vector<float> got = run_step(together.device(), together.queue(), together.program(), together.cache(), step);
  EXPECT_TRUE(std::isnan(got.back()));
  got.resize(want.size());
  EXPECT_TRUE(same_bits(got, want));
}

// Case P08: to the last cell and no further.
TEST(Cache, DecodesToTheEdge) {
  ModelShape shape;
  shape.page_tokens = 16;
  shape.limits = {16, 16, 1, 16};
  Rig whole(shape), steps(shape);
  const auto tokens = random_tokens(16, shape.vocab, 6);
  const std::vector<float> want = whole.run(0, tokens);
  steps.run(0, {tokens.begin(), tokens.begin() + 15});
  EXPECT_TRUE(same_bits(steps.run(0, {tokens[15]}), want));
  EXPECT_THROW(steps.run(0, {1}), std::runtime_error);  // length 17 of 16
  steps.truncate(0, 15);
  EXPECT_TRUE(same_bits(steps.run(0, {tokens[15]}), want));
}

}  // namespace
}  // namespace kvasir::testing
