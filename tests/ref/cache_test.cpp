// SPDX-License-Identifier: MIT
//
// The cache as an object: description, sizes, resize, reading, writing, copying, poisoning and moving of rows, and what
// each of these refuses.
#include <cmath>

#include "cache_fixture.h"

namespace kvasir::testing {
namespace {

class Cache : public CacheTest {
 protected:
  static constexpr uint32_t kDim = 2;

  // Layer `layer`: k of row r is (base + r, -r), v is (10 (base + r), r).
  std::vector<float> rows(float base, uint32_t count) {
    std::vector<float> result;
    for (uint32_t i = 0; i < count; ++i) {
      const auto r = static_cast<float>(i);
      result.insert(result.end(), {base + r, -r, 10 * (base + r), r});
    }
    return result;
  }
  std::vector<float> keys(kvb_cache* cache, uint32_t layer, uint32_t page, uint32_t first, uint32_t count) {
    return read_cache(device, queue.get(), cache, layer, KVB_ROWS_K, page, first, count, kDim);
  }
  std::vector<float> values(kvb_cache* cache, uint32_t layer, uint32_t page, uint32_t first, uint32_t count) {
    return read_cache(device, queue.get(), cache, layer, KVB_ROWS_V, page, first, count, kDim);
  }
  kv_status resize(kvb_cache* cache, uint32_t pages) { return api().cache_resize(queue.get(), cache, &pages, &error); }

  const CacheSpec spec_ = spec(KV_TYPE_F32, kDim);
};

TEST_F(Cache, StoresByPositionThroughThePageTable) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {3});
  store(spec_, cache.get(), 1, rows(100, 6), {2, 0});
  EXPECT_EQ(keys(cache.get(), 1, 2, 0, 4), (std::vector<float>{100, 0, 101, -1, 102, -2, 103, -3}));
  EXPECT_EQ(keys(cache.get(), 1, 0, 0, 2), (std::vector<float>{104, -4, 105, -5}));
  EXPECT_EQ(values(cache.get(), 1, 0, 1, 1), (std::vector<float>{1050, 5}));
  EXPECT_EQ(keys(cache.get(), 0, 2, 0, 1), (std::vector<float>{0, 0}));  // the other layer
}

TEST_F(Cache, WritesWhatItReads) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {2});
  store(spec_, cache.get(), 0, rows(1, 3), {0});
  const auto bytes = stored(cache.get(), 0, KVB_ROWS_V, 0, 1, 2, 16);
  ASSERT_EQ(write(cache.get(), rows_of(1, KVB_ROWS_K, KVB_FORMAT_STORED, 1, 2, 2), bytes.data(), 16), KV_OK);
  EXPECT_EQ(keys(cache.get(), 1, 1, 2, 2), (std::vector<float>{20, 1, 30, 2}));
  EXPECT_EQ(write(cache.get(), rows_of(1, KVB_ROWS_K, KVB_FORMAT_STORED, 1, 4, 0), nullptr, 0), KV_OK);
}

TEST_F(Cache, ResizeKeepsRowsAndCountsBytes) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {1});
  const uint64_t page_bytes = 2 * 4 * 2 * kDim * sizeof(float);  // layers, tokens, K and V
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), page_bytes);
  store(spec_, cache.get(), 0, rows(1, 2), {0});
  ASSERT_EQ(resize(cache.get(), 5), KV_OK);
  EXPECT_EQ(host.live_bytes, 5 * page_bytes);
  EXPECT_EQ(keys(cache.get(), 0, 0, 0, 2), (std::vector<float>{1, 0, 2, -1}));
  EXPECT_EQ(keys(cache.get(), 0, 4, 3, 1), (std::vector<float>{0, 0}));
  ASSERT_EQ(resize(cache.get(), 1), KV_OK);
  EXPECT_EQ(host.live_bytes, page_bytes);
  EXPECT_EQ(keys(cache.get(), 0, 0, 1, 1), (std::vector<float>{2, -1}));
  ASSERT_EQ(resize(cache.get(), 0), KV_OK);
  EXPECT_EQ(host.live_bytes, 0u);
}

// KVB-15
TEST_F(Cache, ResizeIsAllOrNothing) {
  CacheSpec two{{spec_.groups[0], spec_.groups[0]}, {0, 1}};
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), two, {1, 1});
  const uint64_t before = host.live_bytes;
  host.calls_until_failure = 4;  // the second group's pages no longer fit
  const uint32_t more[2] = {4, 4};
  EXPECT_EQ(api().cache_resize(queue.get(), cache.get(), more, &error), KV_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "the host has no 64 bytes for a cache page");
  host.calls_until_failure = -1;
  EXPECT_EQ(host.live_bytes, before);
  const auto one_row = rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 1, 0, 1);
  float data[2];
  EXPECT_EQ(read(cache.get(), one_row, data, sizeof data), KV_INVALID_ARGUMENT);  // page 1 of 1
  EXPECT_EQ(api().cache_resize(queue.get(), cache.get(), more, &error), KV_OK);
  EXPECT_EQ(read(cache.get(), one_row, data, sizeof data), KV_OK);
}

// KVB-13
TEST_F(Cache, MemoryIsPredictedExactly) {
  CacheSpec mixed{
      {{KV_TYPE_Q8_0, KV_TYPE_F16, 3, 40, 24, 0, 16, 0}, {KV_TYPE_BF16, 0, 1, 9, 5, 8, 1, KVB_CACHE_LATENT}},
      {0, 1, 0, 1, 1}};
  const kvb_cache_desc desc = mixed.desc();
  const uint32_t counts[2] = {3, 7};
  kvb_memory memory{sizeof memory, 0, 0, 0};
  ASSERT_EQ(api().cache_memory(device.get(), &desc, counts, &memory, &error), KV_OK) << error.message;
  EXPECT_EQ(memory.device_bytes, 3u * 2 * 16 * (3 * 68 + 3 * 48) + 7 * 3 * 18);
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), mixed, {3, 7});
  EXPECT_EQ(host.live_bytes, memory.device_bytes);
  EXPECT_EQ(device.query(KVB_QUERY_MEMORY_USED), memory.device_bytes);
  const uint32_t absurd[2] = {UINT32_MAX, UINT32_MAX};
  EXPECT_EQ(api().cache_memory(device.get(), &desc, absurd, &memory, &error), KV_OK);
  kvb_cache_group huge{KV_TYPE_F32, KV_TYPE_F32, 1, INT32_MAX, INT32_MAX, 0, 4096, 0};
  const CacheSpec too_much = one_group(1000, huge);
  const kvb_cache_desc too_much_desc = too_much.desc();
  EXPECT_EQ(api().cache_memory(device.get(), &too_much_desc, absurd, &memory, &error), KV_OUT_OF_MEMORY);
}

TEST_F(Cache, LatentValuesAreTheFirstOfTheKeys) {
  const CacheSpec latent = one_group(1, {KV_TYPE_F32, 0, 1, 4, 2, 0, 4, KVB_CACHE_LATENT});
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), latent, {1});
  const float row[4] = {1, 2, 3, 4};
  ASSERT_EQ(write(cache.get(), rows_of(0, KVB_ROWS_K, KVB_FORMAT_STORED, 0, 3, 1), row, sizeof row), KV_OK);
  EXPECT_EQ(values(cache.get(), 0, 0, 3, 1), (std::vector<float>{1, 2}));
  EXPECT_EQ(write(cache.get(), rows_of(0, KVB_ROWS_V, KVB_FORMAT_STORED, 0, 3, 1), row, 8), KV_INVALID_ARGUMENT);
}

TEST_F(Cache, CopyRowsCopiesAllLayersOfTheGroup) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {2});
  store(spec_, cache.get(), 0, rows(1, 4), {0});
  store(spec_, cache.get(), 1, rows(5, 4), {0});
  ASSERT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 0, 0, 1, 1, 2, &error), KV_OK);
  EXPECT_EQ(keys(cache.get(), 0, 1, 0, 4), (std::vector<float>{0, 0, 2, -1, 3, -2, 0, 0}));
  EXPECT_EQ(values(cache.get(), 1, 1, 1, 2), (std::vector<float>{60, 1, 70, 2}));
  EXPECT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 0, 1, 1, 0, 4, &error), KV_OK);
  EXPECT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 1, 0, 1, 0, 1, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 0, 2, 1, 0, 1, &error), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 0, 0, 1, 3, 2, &error), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "rows 3 to 5 of a page of 4 tokens");
  EXPECT_EQ(api().cache_copy_rows(queue.get(), cache.get(), 0, 0, 1, UINT32_MAX, 2, &error), KV_INVALID_ARGUMENT);
}

TEST_F(Cache, PoisonReadsAsNanInEveryType) {
  for (const uint32_t type : {KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0, KV_TYPE_Q4_0}) {
    const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec(type, kDim), {2});
    ASSERT_EQ(api().cache_poison_page(queue.get(), cache.get(), 0, 1, &error), KV_OK);
    for (const float value : keys(cache.get(), 1, 1, 0, 4)) EXPECT_TRUE(std::isnan(value)) << type;
    for (const float value : values(cache.get(), 0, 1, 0, 4)) EXPECT_TRUE(std::isnan(value)) << type;
    EXPECT_EQ(keys(cache.get(), 0, 0, 0, 1), (std::vector<float>{0, 0}));
    EXPECT_EQ(api().cache_poison_page(queue.get(), cache.get(), 0, 2, &error), KV_INVALID_ARGUMENT);
  }
}

TEST_F(Cache, RowsAreRefusedWithTheReason) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {1});
  float data[8] = {};
  const auto refused = [&](kvb_cache_rows rows, uint64_t bytes, kv_status status, const char* sentence) {
    EXPECT_EQ(read(cache.get(), rows, data, bytes), status) << sentence;
    EXPECT_STREQ(error.message, sentence);
  };
  refused(rows_of(2, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1), 8, KV_INVALID_ARGUMENT, "cache layer 2 of 2");
  refused(rows_of(0, 3, KVB_FORMAT_F32, 0, 0, 1), 8, KV_INVALID_ARGUMENT,
          "cache rows of 3 are neither keys nor values");
  refused(rows_of(0, KVB_ROWS_K, 9, 0, 0, 1), 8, KV_INVALID_ARGUMENT, "cache rows in the unknown format 9");
  refused(rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 1, 0, 1), 8, KV_INVALID_ARGUMENT, "page 1 of 1");
  refused(rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 2, 3), 24, KV_INVALID_ARGUMENT,
          "rows 2 to 5 of a page of 4 tokens");
  refused(rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1), 7, KV_INVALID_ARGUMENT, "7 bytes for cache rows of 8");
  kvb_cache_rows reserved = rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1);
  reserved.reserved = 1;
  refused(reserved, 8, KV_UNSUPPORTED, "cache rows set a reserved field");
  EXPECT_EQ(read(cache.get(), rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1), nullptr, 8), KV_INVALID_ARGUMENT);
  EXPECT_EQ(write(cache.get(), rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 0, 0, 1), data, 8), KV_INVALID_ARGUMENT);
  EXPECT_EQ(api().cache_read_rows(queue.get(), cache.get(), nullptr, data, 8, &error), KV_INVALID_ARGUMENT);
}

TEST_F(Cache, DescriptionsAreRefusedWithTheReason) {
  const auto refused = [&](kvb_cache_group group, kv_status status, const char* sentence) {
    const CacheSpec bad = one_group(1, group);
    const kvb_cache_desc desc = bad.desc();
    kvb_cache* cache = nullptr;
    EXPECT_EQ(api().cache_create(device.get(), &desc, &cache, &error), status) << sentence;
    EXPECT_STREQ(error.message, sentence);
    EXPECT_EQ(cache, nullptr);
  };
  const uint32_t f32 = KV_TYPE_F32;
  refused({KV_TYPE_Q6_K, f32, 1, 2, 2, 0, 4, 0}, KV_UNSUPPORTED, "cache group 0 wants keys of type q6_k (13)");
  refused({f32, 0, 1, 2, 2, 0, 4, 0}, KV_UNSUPPORTED, "cache group 0 wants values of type unknown (0)");
  refused({f32, f32, 0, 2, 2, 0, 4, 0}, KV_INVALID_ARGUMENT, "cache group 0 has 0 heads of 2 key and 2 value elements");
  refused({f32, f32, 1, 2, 2, 0, 0, 0}, KV_INVALID_ARGUMENT,
          "cache group 0 has pages of 0 tokens; from 1 to 4096 are possible");
  refused({f32, f32, 1, 2, 2, 0, 4097, 0}, KV_UNSUPPORTED,
          "cache group 0 has pages of 4097 tokens; from 1 to 4096 are possible");
  refused({f32, f32, 1, 2, 2, 0, 4, 6}, KV_UNSUPPORTED, "cache group 0 has unknown flags 0x6");
  refused({f32, f32, 1, 2, 3, 0, 4, KVB_CACHE_LATENT}, KV_INVALID_ARGUMENT,
          "latent cache group 0 takes 3 value elements out of 2 key elements");
  refused({f32, f32, 65536, 65536, 2, 0, 4, 0}, KV_INVALID_ARGUMENT,
          "cache group 0 has rows of 4294967296 key elements");
  CacheSpec lost = spec_;
  lost.layer_group[1] = 5;
  const kvb_cache_desc desc = lost.desc();
  kvb_cache* cache = nullptr;
  EXPECT_EQ(api().cache_create(device.get(), &desc, &cache, &error), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "cache layer 1 is in group 5 of 1");
}

class Moves : public Cache {
 protected:
  kv_status move(kvb_cache* cache, const std::vector<kvb_cache_move>& moves, const kvb_rope* const* rope) {
    return api().cache_move_rows(queue.get(), cache, 0, moves.data(), static_cast<uint32_t>(moves.size()), rope,
                                 &error);
  }

  struct Rope {
    kvb_rope header;
    double frequency[1];
  };
  const Rope rope_{{KVB_ROPE_ADJACENT, 0, 1, 7.0f}, {0.5}};  // the magnitude is in the stored keys already
};

TEST_F(Moves, ReadsEverythingBeforeItWrites) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {2});
  store(spec_, cache.get(), 0, rows(1, 4), {0});
  // Rows 0..2 one down and row 3 to the front: a ring.
  ASSERT_EQ(move(cache.get(), {{0, 0, 0, 1, 3, 0}, {0, 3, 0, 0, 1, 0}}, nullptr), KV_OK) << error.message;
  EXPECT_EQ(keys(cache.get(), 0, 0, 0, 4), (std::vector<float>{4, -3, 1, 0, 2, -1, 3, -2}));
  EXPECT_EQ(values(cache.get(), 0, 0, 0, 4), (std::vector<float>{40, 3, 10, 0, 20, 1, 30, 2}));
  EXPECT_EQ(host.live_bytes, device.query(KVB_QUERY_MEMORY_USED));
}

TEST_F(Moves, RotatesKeysByTheDifference) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {2});
  store(spec_, cache.get(), 0, rows(1, 2), {0});
  store(spec_, cache.get(), 1, rows(1, 2), {0});
  const kvb_rope* const ropes[2] = {&rope_.header, nullptr};
  ASSERT_EQ(move(cache.get(), {{0, 0, 1, 2, 2, -3}}, ropes), KV_OK) << error.message;
  const double c = std::cos(1.5), s = std::sin(1.5);  // turned back by 3 * 0.5
  expect_near(keys(cache.get(), 0, 1, 2, 2), {c, -s, 2 * c - s, -2 * s - c});
  EXPECT_EQ(values(cache.get(), 0, 1, 2, 2), (std::vector<float>{10, 0, 20, 1}));
  EXPECT_EQ(keys(cache.get(), 1, 1, 2, 2), (std::vector<float>{1, 0, 2, -1}));  // not rotated
  EXPECT_EQ(keys(cache.get(), 0, 0, 0, 2), (std::vector<float>{1, 0, 2, -1}));  // the source stays
}

TEST_F(Moves, RotationEqualsRopeAtTheNewPosition) {
  for (const uint32_t pairing : {KVB_ROPE_ADJACENT, KVB_ROPE_HALVES}) {
    const CacheSpec wide = one_group(1, {KV_TYPE_F32, KV_TYPE_F32, 2, 6, 6, 0, 8, 0});
    ProgramBuilder builder;
    const uint32_t x = builder.tokens(12), k = builder.tokens(12);
    builder.op(KVB_OP_EMBED, {}, {x});
    const uint32_t offset = builder.rope(pairing, 1, 1.25f, {1.0, 0.1});
    builder.op(KVB_OP_ROPE, {x}, {k}, {2, 6, offset});
    builder.op(KVB_OP_KV_STORE, {k, x}, {}, {0});
    builder.op(KVB_OP_SELECT_ROWS, {k}, {builder.output(12)});
    const TestProgram program(device, builder, wide);
    const Owned<kvb_cache> cache = make_cache(device, queue.get(), wide, {1});
    StepData step;
    TestSequence sequence{0, {{0}}};
    const int32_t row = step.embed({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    step.append(sequence, {row, row, row, row, row, row}, true);  // the same key at positions 0 to 5
    const std::vector<float> roped = run_step(device, queue.get(), program, cache.get(), step);
    const auto* header = reinterpret_cast<const kvb_rope*>(&builder.blob[offset / 8]);
    ASSERT_EQ(move(cache.get(), {{0, 4, 0, 0, 1, -3}}, &header), KV_OK) << error.message;
    const std::vector<float> moved = read_cache(device, queue.get(), cache.get(), 0, KVB_ROWS_K, 0, 0, 1, 12);
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(moved[i], roped[12 + i], 1e-5) << i;  // position 1
  }
}

TEST_F(Moves, AreRefusedWhole) {
  const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec_, {1});
  store(spec_, cache.get(), 0, rows(1, 4), {0});
  const auto before = keys(cache.get(), 0, 0, 0, 4);
  EXPECT_EQ(move(cache.get(), {{0, 0, 0, 1, 1, 0}, {0, 0, 1, 0, 1, 0}}, nullptr), KV_INVALID_ARGUMENT);
  EXPECT_EQ(move(cache.get(), {{0, 3, 0, 0, 2, 0}}, nullptr), KV_INVALID_ARGUMENT);
  Rope broken = rope_;
  broken.header.first = 1;
  const kvb_rope* const ropes[2] = {nullptr, &broken.header};
  EXPECT_EQ(move(cache.get(), {{0, 0, 0, 1, 1, 1}}, ropes), KV_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "rotary parameters of layer 1 of the group: the rotated part passes the head's end");
  for (int64_t calls = 0; calls < 2; ++calls) {
    host.calls_until_failure = calls;
    EXPECT_EQ(move(cache.get(), {{0, 0, 0, 1, 1, 0}}, nullptr), KV_OUT_OF_MEMORY);
  }
  EXPECT_EQ(keys(cache.get(), 0, 0, 0, 4), before);
}

}  // namespace
}  // namespace kvasir::testing
