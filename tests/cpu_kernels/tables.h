// SPDX-License-Identifier: MIT
//
// The kernel tables under test: all that this processor runs, and the avx512 kernels over emulated intrinsics.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simd/kernels.h"

namespace kvasir::cpu {
namespace avx512_emulated {
extern const Kernels kKernels, kKernelsWithBF16;
}

namespace testing {

struct NamedTable {
  std::string name;
  const Kernels* kernels;  // NULL: this processor cannot run it
};

inline std::vector<NamedTable> all_tables() {
  std::vector<NamedTable> out;
  for (const char* name : {"scalar", "avx2", "avx512"}) out.push_back({name, find_kernels(name)});
  out.push_back({"avx512_emulated", &avx512_emulated::kKernels});
  out.push_back({"avx512bf16_emulated", &avx512_emulated::kKernelsWithBF16});
  return out;
}

inline const Kernels& scalar_table() { return *find_kernels("scalar"); }

// A test with one instance for each table; the fixture skips where the processor lacks the instructions.
class TableTest : public ::testing::TestWithParam<NamedTable> {
 protected:
  void SetUp() override {
    if (GetParam().kernels == nullptr)
      GTEST_SKIP() << "this processor has no " << GetParam().name << "; its kernels ran as avx512_emulated only";
  }
  const Kernels& kernels() const { return *GetParam().kernels; }
};

inline std::string table_name(const ::testing::TestParamInfo<NamedTable>& instance) { return instance.param.name; }

#define KV_INSTANTIATE_TABLES(Suite) INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(all_tables()), table_name)

}  // namespace testing
}  // namespace kvasir::cpu
