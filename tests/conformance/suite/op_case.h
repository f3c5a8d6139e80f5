// SPDX-License-Identifier: MIT
//
// A program around one op: inputs that are rows of tables, the op, an output. Runs on the backend and on the reference,
// and the two are compared. Used by the ops, poison and groups cases.
#pragma once

#include <string>
#include <vector>

#include "reference/limits.h"
#include "reference/program.h"
#include "suite/expect.h"
#include "suite/random.h"
#include "suite/suite.h"

namespace kvasir::conformance {

// Throws Unsupported when the device refuses the program, and Failed when it does so wrongly: program_check must name
// op `index_of_tested`, and program_compile must refuse as well.
void require_supported(const testing::TestDevice& device, const testing::ProgramBuilder& program,
                       const testing::CacheSpec& cache, uint32_t index_of_tested);

// `got` [rows][width] is within `limit` of `want`; errors below 1e-32 do not count.
void check_within(const Matrix& want, const std::vector<float>& got, const Limit& limit, const std::string& what);

class OpCase {
 public:
  OpCase(std::string_view name, uint32_t tokens, uint32_t compute_mode = KV_COMPUTE_EXACT);

  // A value [T, width]: row t of `table` for token t.
  uint32_t input(uint32_t width, const std::vector<float>& table);
  uint32_t input(uint32_t width, float deviation = 1, float mean = 0) {
    return input(width, random.normals(size_t{token_count_} * width, deviation, mean));
  }
  // The op under test; the index program_check has to name when it is refused is that of the first such call.
  kvb_op& op(uint16_t code, std::initializer_list<uint32_t> in, std::initializer_list<uint32_t> out,
             std::initializer_list<uint32_t> param = {});
  // Selects every row of a value [T, width] for the host.
  void output(uint32_t value);

  // One step of all tokens, at positions from `first` on.
  void run(Subject& subject, const Limit& limit, uint32_t first = 0);

  uint32_t tokens() const { return token_count_; }
  testing::ProgramBuilder builder;
  testing::CacheSpec cache;  // none, unless the case describes one
  Random random;

 private:
  uint32_t token_count_;
  uint32_t tested_ = KVB_NONE;
};

// "F32", "EXACT": parts of names.
const char* mode_label(uint32_t compute_mode);
inline constexpr uint32_t kModes[] = {KV_COMPUTE_EXACT, KV_COMPUTE_FAST};

}  // namespace kvasir::conformance
