// SPDX-License-Identifier: MIT
//
// What the tests of backends/ref share: the backend's entry function, a device on a counting host, and short ways to
// run a program of a few ops.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "support/backend_harness.h"

#ifdef KVB_STATIC
extern "C" const kvb_api* kv_backend_query_v0_ref(const kvb_host* host, kv_error* error);
#endif

namespace kvasir::testing {

inline kvb_query_fn ref_query() {
#ifdef KVB_STATIC
  return kv_backend_query_v0_ref;
#else
  static const kvb_query_fn query = find_plugin("ref");
  if (query == nullptr) throw std::runtime_error("no ref plugin in the folder KVASIR_TEST_PLUGINS");
  return query;
#endif
}

class RefTest : public ::testing::Test {
 protected:
  const kvb_api& api() const { return *device.api; }

  // Feeds `rows` [T][width] as embeddings at positions from 0 of one sequence and returns every output row.
  std::vector<float> run_rows(const ProgramBuilder& builder, const CacheSpec& spec, const std::vector<float>& rows,
                              uint32_t width) {
    const TestProgram program(device, builder, spec);
    const std::vector<uint32_t> page_counts(spec.groups.size(), 64);
    const Owned<kvb_cache> cache = make_cache(device, queue.get(), spec, page_counts);
    TestSequence sequence{0, std::vector<std::vector<uint32_t>>(spec.groups.size())};
    for (auto& pages : sequence.pages) {
      for (uint32_t page = 0; page < 64; ++page) pages.push_back(page);
    }
    StepData step;
    std::vector<int32_t> ids;
    for (size_t first = 0; first < rows.size(); first += width) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
      ids.push_back(step.embed({begin, begin + static_cast<std::ptrdiff_t>(width)}));
    }
    step.append(sequence, ids, true);
    return run_step(device, queue.get(), program, cache.get(), step);
  }

  TestHost host;
  TestDevice device{ref_query(), host};
  Owned<kvb_queue> queue = device.queue();
};

inline void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                        double tolerance = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(double{actual[i]}, expected[i], tolerance) << "element " << i;
}

}  // namespace kvasir::testing
