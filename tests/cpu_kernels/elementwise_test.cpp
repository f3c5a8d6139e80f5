// SPDX-License-Identifier: MIT
//
// Norms, rotations, activations and sums: against double precision, the same bits from every table, nothing read or
// written beside the rows, results in place.
#include <bit>
#include <cmath>
#include <functional>

#include "product.h"
#include "tables.h"

namespace kvasir::cpu::testing {
namespace {

class ElementwiseTest : public TableTest {};
KV_INSTANTIATE_TABLES(ElementwiseTest);

// A row of n floats between NaNs that must stay NaN.
class Guarded {
 public:
  explicit Guarded(size_t n, float fill = kNan) : data_(n + 32, kNan) { std::fill(begin(), begin() + n, fill); }
  explicit Guarded(const std::vector<float>& row) : Guarded(row.size()) { std::copy(row.begin(), row.end(), begin()); }
  float* begin() { return data_.data() + 16; }
  size_t size() const { return data_.size() - 32; }
  std::vector<float> row() { return {begin(), begin() + size()}; }
  bool intact() const {
    for (size_t i = 0; i < 16; ++i)
      if (!std::isnan(data_[i]) || !std::isnan(data_[data_.size() - 1 - i])) return false;
    return true;
  }

 private:
  std::vector<float> data_;
};

// Runs f(table, output) on the table under test and on the scalar one: same bits, guards intact. f may work in place.
std::vector<float> run_checked(const Kernels& kernels, const std::vector<float>& before,
                               const std::function<void(const Kernels&, float*)>& f) {
  const FloatState state;
  Guarded got(before), want(before);
  f(kernels, got.begin());
  f(scalar_table(), want.begin());
  EXPECT_TRUE(got.intact());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(got.begin()[i]), std::bit_cast<uint32_t>(want.begin()[i])) << "element " << i;
  return got.row();
}

TEST_P(ElementwiseTest, RmsNorm) {
  Random random(31);
  for (const uint32_t group : {1u, 7u, 16u, 64u, 65u, 80u, 100u, 128u, 1000u})
    for (const uint32_t groups : {1u, 3u})
      for (const bool weighted : {false, true}) {
        const uint32_t rows = 2, width = group * groups;
        const std::vector<float> x = random_rows(rows, width, random), w = random_rows(1, group, random);
        const float eps = 1e-5f;
        const std::vector<float> y = run_checked(kernels(), x, [&](const Kernels& k, float* out) {
          k.rms_norm(out, width, weighted ? w.data() : nullptr, eps, rows, width, group, out, width);
        });
        const std::vector<float> apart =
            run_checked(kernels(), std::vector<float>(x.size()), [&](const Kernels& k, float* out) {
              k.rms_norm(x.data(), width, weighted ? w.data() : nullptr, eps, rows, width, group, out, width);
            });
        EXPECT_EQ(apart, y) << "in place and not";
        for (size_t first = 0; first < x.size(); first += group) {
          double sum = 0;
          for (size_t i = 0; i < group; ++i) sum += double{x[first + i]} * x[first + i];
          const double scale = 1 / std::sqrt(sum / group + eps);
          for (size_t i = 0; i < group; ++i) {
            const double want = x[first + i] * scale * (weighted ? w[i] : 1.0f);
            ASSERT_NEAR(y[first + i], want, std::abs(want) * (group / 32.0 + 8) * 0x1p-24) << "group of " << group;
          }
        }
      }
}

TEST_P(ElementwiseTest, RmsNormRowsWithGaps) {
  Random random(32);
  const uint32_t rows = 3, width = 40, stride = 47;
  const std::vector<float> x = random_rows(rows, stride, random), w = random_rows(1, width, random);
  const std::vector<float> y =
      run_checked(kernels(), std::vector<float>(rows * stride, 7.0f), [&](const Kernels& k, float* out) {
        k.rms_norm(x.data(), stride, w.data(), 1e-6f, rows, width, width, out, stride);
      });
  for (uint32_t r = 0; r < rows; ++r) {
    const std::vector<float> alone =
        run_checked(kernels(), std::vector<float>(width), [&](const Kernels& k, float* out) {
          k.rms_norm(x.data() + r * stride, stride, w.data(), 1e-6f, 1, width, width, out, width);
        });
    for (uint32_t i = 0; i < stride; ++i) ASSERT_EQ(y[r * stride + i], i < width ? alone[i] : 7.0f);
  }
}

TEST_P(ElementwiseTest, RopeRotatesPairsAndLeavesTheRest) {
  Random random(33);
  struct Shape {
    uint32_t heads, head_dim, first, pairs;
  };
  for (const Shape s : {Shape{1, 2, 0, 1},
                        {3, 16, 0, 8},
                        {2, 64, 0, 32},
                        {2, 80, 0, 40},
                        {4, 64, 10, 13},
                        {1, 128, 64, 17},
                        {2, 24, 0, 12},
                        {1, 8, 0, 0}})
    for (const RopePairing pairing : {RopePairing::kAdjacent, RopePairing::kHalves}) {
      const std::vector<float> x = random_rows(s.heads, s.head_dim, random);
      const std::vector<float> cosines = random_rows(1, s.pairs, random), sines = random_rows(1, s.pairs, random);
      const auto rotate = [&](const float* in) {
        return [&, in](const Kernels& k, float* out) {
          k.rope(in != nullptr ? in : out, cosines.data(), sines.data(), s.heads, s.head_dim, s.first, s.pairs, pairing,
                 out);
        };
      };
      const std::vector<float> y = run_checked(kernels(), x, rotate(nullptr));
      EXPECT_EQ(run_checked(kernels(), std::vector<float>(x.size()), rotate(x.data())), y) << "in place and not";
      std::vector<double> want(x.begin(), x.end());
      for (size_t h = 0; h < s.heads; ++h)
        for (size_t i = 0; i < s.pairs; ++i) {
          const bool adjacent = pairing == RopePairing::kAdjacent;
          const size_t u = h * s.head_dim + s.first + (adjacent ? 2 * i : i), v = u + (adjacent ? 1 : s.pairs);
          want[u] = double{x[u]} * cosines[i] - double{x[v]} * sines[i];
          want[v] = double{x[u]} * sines[i] + double{x[v]} * cosines[i];
        }
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(y[i], want[i], 0x1p-22) << "element " << i << " of " << s.head_dim;
    }
}

double activation(Activation act, double x) {
  switch (act) {
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu: return std::max(x, 0.0);
  }
  return 0;
}

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu};

TEST_P(ElementwiseTest, ActivateAndGlu) {
  Random random(34);
  for (const uint32_t n : {0u, 1u, 15u, 16u, 17u, 33u, 64u, 100u}) {
    std::vector<float> gate = random_rows(1, n, random);
    for (float& v : gate) v *= 8;
    const std::vector<float> up = random_rows(1, n, random);
    for (const Activation act : kActivations) {
      const std::vector<float> alone =
          run_checked(kernels(), gate, [&](const Kernels& k, float* out) { k.activate(act, out, n, out); });
      const std::vector<float> y =
          run_checked(kernels(), gate, [&](const Kernels& k, float* out) { k.glu(act, out, up.data(), n, out); });
      for (uint32_t i = 0; i < n; ++i) {
        const double want = activation(act, gate[i]);
        ASSERT_NEAR(alone[i], want, 4e-6) << "activation " << int(act) << " of " << gate[i];
        ASSERT_EQ(y[i], alone[i] * up[i]);
      }
    }
  }
}

TEST_P(ElementwiseTest, AddAndScale) {
  Random random(35);
  for (const uint32_t n : {0u, 1u, 15u, 16u, 17u, 33u, 100u}) {
    const std::vector<float> a = random_rows(1, n, random), b = random_rows(1, n, random);
    const std::vector<float> sum =
        run_checked(kernels(), a, [&](const Kernels& k, float* out) { k.add(out, b.data(), n, out); });
    const std::vector<float> scaled =
        run_checked(kernels(), a, [&](const Kernels& k, float* out) { k.scale(out, 0.3f, n, out); });
    for (uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(sum[i], a[i] + b[i]);
      ASSERT_EQ(scaled[i], a[i] * 0.3f);
    }
  }
}

TEST(FindKernels, KnowsItsTables) {
  EXPECT_STREQ(find_kernels("scalar")->name, "scalar");
  EXPECT_EQ(find_kernels("avx1024"), nullptr);
  EXPECT_EQ(find_kernels(""), nullptr);
  const KernelList list = available_kernels();
  ASSERT_GE(list.count, 1u);
  EXPECT_EQ(find_kernels(nullptr), list.tables[list.count - 1]);
  for (uint32_t i = 0; i < list.count; ++i) EXPECT_EQ(find_kernels(list.tables[i]->name), list.tables[i]);
}

}  // namespace
}  // namespace kvasir::cpu::testing
