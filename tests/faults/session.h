// SPDX-License-Identifier: MIT
//
// Runs commands on a real context and on the model beside it, and compares everything after each. Commands are plain
// numbers, so that a failing list shrinks; what was called is kept as lines of C. No test framework in here but kv.h's.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "faults/context_model.h"
#include "faults/oracle.h"
#include "support/toy_model.h"

namespace kvasir::test {

enum class Call : uint8_t {
  kPrefill,
  kDecode,
  kStep,
  kFork,
  kTruncate,
  kCreate,
  kRelease,
  kTokens,
  kCacheRead,
  kTrace,
  kBadStep,
  kBadArgument,
  kOtherContext,
  kCount
};

enum class Trouble : uint8_t {
  kNone,
  kAllocator,  // kv_allocator gives no block
  kBackend,    // a call of the backend fails
  kMalloc,     // an allocation of the process fails
  kCancelled,  // the flag is set before the call
  kCancelAtProgress,
  kCancelAtRow,
  kCancelFromThread,
  kCount
};

struct Command {
  Call call = Call::kPrefill;
  uint8_t a = 0, b = 0, c = 0;  // arguments, taken modulo what there is
  Trouble trouble = Trouble::kNone;
  uint8_t at = 0;  // when the trouble comes
  bool keep = false;
  uint8_t outputs = 0;
};
std::ostream& operator<<(std::ostream& out, const Command& command);

struct SessionOptions {
  std::string device = "ref";
  uint32_t page_tokens = 1, batch = 1, max_sequences = 2, window = 0, threads = 1;
  uint32_t k_type = KV_TYPE_F32, v_type = KV_TYPE_F32;
  uint64_t max_tokens = 12;
  bool poison = false;
};

class Session {
 public:
  explicit Session(const SessionOptions& options);
  ~Session();

  // Empty, or what was wrong.
  std::string run(const Command& command);
  // Every sequence goes on as a recomputed one does.
  std::string finish();
  const std::string& log() const { return log_; }

 private:
  struct Step;

  kv_sequence pick(uint8_t number) const;  // a sequence that exists, mostly
  std::string compare();
  static std::string check(bool right, const std::string& what) { return right ? "" : what; }
  void note(const std::string& line) { log_ += line + "\n"; }

  Step make_step(const Command& command);
  std::string step(const Command& command);
  std::string take(const Command& command, Step step);
  std::string bad_step(const Command& command);
  // `injected`: the status of the trouble that struck, or KV_OK.
  std::string judge(const Command& command, const Step& step, kv_status status, const Error& error, kv_status injected);
  std::string judge_rows(const Step& step);
  std::string fork(const Command& command);
  std::string truncate(const Command& command);
  std::string create(const Command& command);
  std::string release(const Command& command);
  std::string tokens(const Command& command);
  std::string cache_read(const Command& command);
  std::string trace(const Command& command);
  std::string bad_argument(const Command& command);
  std::string other_context(const Command& command);
  // Of a call that may have been troubled: as predicted, or failed by the trouble.
  std::string outcome(const std::string& line, kv_status status, kv_status predicted, kv_status injected,
                      const Error& error);

  SessionOptions options_;
  RuntimePtr runtime_;
  ModelPtr model_;
  ContextPtr context_;
  ContextModel expected_;
  std::unique_ptr<Oracle> oracle_;
  kv_context_options context_options_;
  kv_sequence ids_ = 1;  // every id so far is below
  std::string log_;
  bool tracing_ = false;
  uint64_t records_ = 0;  // rows of traces
};

}  // namespace kvasir::test
