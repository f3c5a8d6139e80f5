// SPDX-License-Identifier: MIT
//
// The attention and cache kernels alone: the same bits in scalar code, AVX2 and (emulated) AVX-512, right values
// against double arithmetic, and nothing of the cells outside a span in any result.
#include "simd/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cache_cells.h"
#include "sdk/half.h"
#include "simd/float_state.h"

namespace kvasir::cpu {
namespace avx512_emulated {
extern const AttentionKernels kAttentionKernels;
}
namespace {

std::vector<const AttentionKernels*> tables() {
  std::vector<const AttentionKernels*> out = {&scalar::kAttentionKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(&avx2::kAttentionKernels);
#endif
  out.push_back(&avx512_emulated::kAttentionKernels);
  return out;
}

constexpr CacheType kTypes[] = {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0};
constexpr uint32_t kDims[] = {1, 8, 20, 48, 64, 80, 128};
constexpr uint32_t kPages[] = {1, 5, 16, 100, 256};

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

float widened(const SideLayout& side, const EncodedHead& head, uint32_t d) {
  uint16_t bits;
  std::memcpy(&bits, head.codes + size_t{d} * 2, 2);
  if (side.type == CacheType::kF16) return sdk::f32_from_f16(bits);
  if (side.type == CacheType::kBF16) return sdk::f32_from_bf16(bits);
  if (side.type == CacheType::kQ8_0)
    return sdk::f32_from_f16(head.scales[d / kScaleDims]) * static_cast<float>(static_cast<int8_t>(head.codes[d]));
  float x;
  std::memcpy(&x, head.codes + size_t{d} * 4, 4);
  return x;
}

// One head's keys or values of a page: rows [first, end) hold random numbers, all other cells NaN.
struct Cells {
  Cells(const SideLayout& layout, bool values, uint32_t first, uint32_t end, uint32_t seed)
      : side(layout),
        memory(layout.bytes + kPageSlack, std::byte{0xff}),
        rows(size_t{layout.page_tokens} * layout.dim) {
    const std::vector<float> x = random_floats(size_t{end} * side.dim, seed);
    for (uint32_t row = first; row < end; row++) {
      EncodedHead head;
      scalar::kAttentionKernels.encode(side.type, &x[size_t{row} * side.dim], side.dim, side.padded, head.codes,
                                       head.scales);
      values ? store_value(side, memory.data(), row, head) : store_key(side, memory.data(), row, head);
      for (uint32_t d = 0; d < side.dim; d++) rows[size_t{row} * side.dim + d] = widened(side, head, d);
    }
  }
  SideLayout side;
  std::vector<std::byte> memory;
  std::vector<float> rows;  // [page_tokens, dim], as read back
};

template <class Check>
void for_layouts(bool values, const Check& check) {
  const FloatState state;
  for (const CacheType type : kTypes) {
    for (const uint32_t dim : kDims) {
      for (const uint32_t page : kPages) {
        SCOPED_TRACE("type " + std::to_string(static_cast<int>(type)) + ", dim " + std::to_string(dim) + ", page " +
                     std::to_string(page));
        const uint32_t first = page / 3, end = page - page / 4;
        check(Cells(side_layout(type, page, dim, values), values, first, end, dim * page),
              CacheSpan{nullptr, first, end - first});
      }
    }
  }
}

TEST(AttentionKernels, ScoresAreExactAndEqual) {
  for_layouts(false, [](const Cells& cells, CacheSpan span) {
    span.data = cells.memory.data();
    const uint32_t dim = cells.side.dim;
    for (const uint32_t rows : {1u, 2u, 3u, 7u}) {
      const std::vector<float> q = random_floats(size_t{rows} * dim, rows);
      std::vector<float> want(rows * kScoreStride, -7.0f);
      scalar::kAttentionKernels.scores(cells.side, span, q.data(), dim, rows, want.data());
      for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < span.count; i++) {
          double sum = 0;
          for (uint32_t d = 0; d < dim; d++)
            sum += double{q[r * dim + d]} * double{cells.rows[size_t{span.first_row + i} * dim + d]};
          ASSERT_NEAR(double{want[r * kScoreStride + i]}, sum, 2e-5) << "row " << r << ", position " << i;
        }
        for (uint32_t i = span.count; i < kScoreStride; i++) ASSERT_EQ(want[r * kScoreStride + i], -7.0f);
      }
      for (const AttentionKernels* table : tables()) {
        std::vector<float> got(rows * kScoreStride, -7.0f);
        table->scores(cells.side, span, q.data(), dim, rows, got.data());
        ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * 4), 0) << table->name;
      }
    }
  });
}

TEST(AttentionKernels, ValuesAreExactAndEqual) {
  for_layouts(true, [](const Cells& cells, CacheSpan span) {
    span.data = cells.memory.data();
    const uint32_t dim = cells.side.dim, padded = cells.side.padded;
    for (const uint32_t rows : {1u, 2u, 3u, 7u}) {
      const std::vector<float> weights = random_floats(rows * kScoreStride, rows);
      std::vector<float> want(size_t{rows} * padded, 0.5f);
      scalar::kAttentionKernels.values(cells.side, span, weights.data(), rows, want.data(), padded);
      for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t d = 0; d < dim; d++) {
          double sum = 0.5;
          for (uint32_t i = 0; i < span.count; i++)
            sum += double{weights[r * kScoreStride + i]} * double{cells.rows[size_t{span.first_row + i} * dim + d]};
          ASSERT_NEAR(double{want[size_t{r} * padded + d]}, sum, 5e-5) << "row " << r << ", element " << d;
        }
      }
      for (const AttentionKernels* table : tables()) {
        std::vector<float> got(size_t{rows} * padded, 0.5f);
        table->values(cells.side, span, weights.data(), rows, got.data(), padded);
        for (uint32_t r = 0; r < rows; r++)
          ASSERT_EQ(std::memcmp(&got[size_t{r} * padded], &want[size_t{r} * padded], dim * 4), 0) << table->name;
      }
    }
  });
}

// A span cut anywhere gives the bits of the whole.
TEST(AttentionKernels, ValuesCanBeCutAnywhere) {
  for_layouts(true, [](const Cells& cells, CacheSpan span) {
    span.data = cells.memory.data();
    const uint32_t padded = cells.side.padded, cut = span.count / 2;
    const std::vector<float> weights = random_floats(3 * kScoreStride, 5);
    std::vector<float> whole(size_t{3} * padded, 0.0f), parts = whole;
    const AttentionKernels& table = *tables()[tables().size() > 2 ? 1 : 0];
    table.values(cells.side, span, weights.data(), 3, whole.data(), padded);
    table.values(cells.side, {span.data, span.first_row, cut}, weights.data(), 3, parts.data(), padded);
    table.values(cells.side, {span.data, span.first_row + cut, span.count - cut}, weights.data() + cut, 3, parts.data(),
                 padded);
    for (uint32_t r = 0; r < 3; r++)
      ASSERT_EQ(std::memcmp(&whole[size_t{r} * padded], &parts[size_t{r} * padded], cells.side.dim * 4), 0);
  });
}

TEST(AttentionKernels, SoftmaxLeavesOutWhatIsNotSeen) {
  const FloatState state;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [lo, hi] :
       std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {0, 256}, {3, 17}, {15, 16}, {200, 255}}) {
    std::vector<float> scores(kScoreStride, nan);
    const std::vector<float> x = random_floats(kScoreStride, hi);
    std::copy(x.begin() + lo, x.begin() + hi, scores.begin() + lo);
    double highest = -1e30, total = 0;
    for (uint32_t i = lo; i < hi; i++) highest = std::max(highest, double{x[i]});
    for (uint32_t i = lo; i < hi; i++) total += std::exp(double{x[i]} - highest);
    std::vector<float> want = scores;
    float max = 0, sum = 0;
    scalar::kAttentionKernels.softmax(want.data(), lo, hi, &max, &sum);
    EXPECT_EQ(double{max}, highest);
    EXPECT_NEAR(double{sum}, total, total * 1e-6);
    for (uint32_t i = lo / 16 * 16; i < (hi + 15) / 16 * 16; i++) {
      const double expected = i >= lo && i < hi ? std::exp(double{x[i]} - highest) : 0;
      ASSERT_NEAR(double{want[i]}, expected, 2e-7) << i;
    }
    for (const AttentionKernels* table : tables()) {
      std::vector<float> got = scores;
      float other_max = 0, other_sum = 0;
      table->softmax(got.data(), lo, hi, &other_max, &other_sum);
      EXPECT_EQ(max, other_max) << table->name;
      EXPECT_EQ(sum, other_sum) << table->name;
      EXPECT_EQ(std::memcmp(&got[lo], &want[lo], (hi - lo) * 4), 0) << table->name;
    }
  }
}

TEST(AttentionKernels, SoftmaxOfExtremeScores) {
  const FloatState state;
  const float inf = std::numeric_limits<float>::infinity();
  for (const AttentionKernels* table : tables()) {
    std::vector<float> scores(kScoreStride, -inf);
    float max = 0, sum = 0;
    table->softmax(scores.data(), 0, 20, &max, &sum);
    EXPECT_EQ(max, kNoMaximum) << table->name;
    EXPECT_EQ(sum, 0.0f) << table->name;
    scores.assign(kScoreStride, 0.0f);
    scores[7] = std::numeric_limits<float>::quiet_NaN();
    table->softmax(scores.data(), 0, 20, &max, &sum);
    EXPECT_TRUE(std::isnan(sum)) << table->name;
  }
}

TEST(AttentionKernels, JoinAndFinish) {
  const FloatState state;
  const std::vector<float> a = random_floats(32, 1), b = random_floats(32, 2);
  std::vector<float> want;
  for (const AttentionKernels* table : tables()) {
    std::vector<float> total(32, 0.0f), y(20);
    float max = kNoMaximum, sum = 0;
    table->join(3.0f, 2.0f, a.data(), 32, &max, &sum, total.data());
    EXPECT_EQ(max, 3.0f);
    EXPECT_EQ(sum, 2.0f);
    EXPECT_EQ(total, a) << table->name << ": the first split is taken as it is";
    table->join(4.5f, 1.5f, b.data(), 32, &max, &sum, total.data());
    table->finish(total.data(), sum, 20, y.data());
    const double factor = std::exp(-1.5);
    for (uint32_t i = 0; i < 20; i++)
      EXPECT_NEAR(double{y[i]}, (double{a[i]} * factor + double{b[i]}) / (2 * factor + 1.5), 1e-6);
    if (want.empty()) want = y;
    EXPECT_EQ(y, want) << table->name;
  }
}

TEST(AttentionKernels, EncodingRoundsAsTheReferenceDoes) {
  const FloatState state;
  std::vector<float> x = random_floats(70, 9);
  x[3] = 0, x[4] = -0.0f, x[5] = 70000, x[6] = 1e-6f, x[7] = 1e-8f, x[8] = 3.4e38f;
  for (const AttentionKernels* table : tables()) {
    EncodedHead head;
    table->encode(CacheType::kF16, x.data(), 70, 80, head.codes, head.scales);
    for (uint32_t i = 0; i < 80; i++) {
      uint16_t bits;
      std::memcpy(&bits, head.codes + i * 2, 2);
      EXPECT_EQ(bits, i < 70 ? sdk::f16_from_f32(x[i]) : 0) << table->name << " " << i;
    }
    table->encode(CacheType::kBF16, x.data(), 70, 80, head.codes, head.scales);
    for (uint32_t i = 0; i < 80; i++) {
      uint16_t bits;
      std::memcpy(&bits, head.codes + i * 2, 2);
      EXPECT_EQ(bits, i < 70 ? sdk::bf16_from_f32(x[i]) : 0) << table->name << " " << i;
    }
  }
}

TEST(AttentionKernels, BrokenRowsOfQ8ReadAsNaN) {
  const FloatState state;
  for (const AttentionKernels* table : tables()) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(64, 1.0f);
      x[40] = bad;
      EncodedHead head;
      table->encode(CacheType::kQ8_0, x.data(), 64, 64, head.codes, head.scales);
      EXPECT_EQ(head.scales[0], sdk::f16_from_f32(1.0f / 127)) << table->name;
      EXPECT_EQ(head.scales[1], 0x7e00) << table->name;
      EXPECT_EQ(static_cast<int8_t>(head.codes[0]), 127);
      EXPECT_EQ(static_cast<int8_t>(head.codes[33]), 0);
    }
    std::vector<float> large(32, 1e9f), zero(32, 0.0f);
    EncodedHead head;
    table->encode(CacheType::kQ8_0, large.data(), 32, 32, head.codes, head.scales);
    EXPECT_EQ(head.scales[0], 0x7bff);
    EXPECT_EQ(static_cast<int8_t>(head.codes[0]), 127);
    table->encode(CacheType::kQ8_0, zero.data(), 32, 32, head.codes, head.scales);
    EXPECT_EQ(head.scales[0], 0);
  }
}

}  // namespace
}  // namespace kvasir::cpu
