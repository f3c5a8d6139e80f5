// SPDX-License-Identifier: MIT
//
// State before = state after: random calls on a context, good ones and ones that are refused, that fail and that are
// cancelled, beside a simple model of it. After each call everything that can be seen is compared.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "faults/session.h"

namespace rc {

template <>
struct Arbitrary<kvasir::test::Command> {
  static Gen<kvasir::test::Command> arbitrary() {
    using kvasir::test::Call;
    using kvasir::test::Command;
    using kvasir::test::Trouble;
    const auto call = gen::map(gen::weightedElement<int>({{8, 0},
                                                          {6, 1},
                                                          {8, 2},
                                                          {6, 3},
                                                          {4, 4},
                                                          {3, 5},
                                                          {2, 6},
                                                          {1, 7},
                                                          {1, 8},
                                                          {1, 9},
                                                          {1, 10},
                                                          {1, 11},
                                                          {1, 12}}),
                               [](int i) { return static_cast<Call>(i); });
    const auto trouble =
        gen::map(gen::weightedElement<int>({{10, 0}, {2, 1}, {2, 2}, {2, 3}, {1, 4}, {2, 5}, {1, 6}, {1, 7}}),
                 [](int i) { return static_cast<Trouble>(i); });
    const auto small = gen::inRange<uint8_t>(0, 32);
    return gen::build<Command>(gen::set(&Command::call, call), gen::set(&Command::a, small),
                               gen::set(&Command::b, small), gen::set(&Command::c, small),
                               gen::set(&Command::trouble, trouble), gen::set(&Command::at, small),
                               gen::set(&Command::keep), gen::set(&Command::outputs, gen::inRange<uint8_t>(0, 6)));
  }
};

}  // namespace rc

namespace kvasir::test {
namespace {

SessionOptions draw_options(const std::string& device) {
  SessionOptions o;
  const auto type = [] { return *rc::gen::element<uint32_t>(KV_TYPE_F32, KV_TYPE_F16, KV_TYPE_BF16, KV_TYPE_Q8_0); };
  o.device = device;
  o.page_tokens = *rc::gen::element<uint32_t>(1, 2, 4, 16);
  o.batch = *rc::gen::element<uint32_t>(1, 3, 4, 16);
  o.max_sequences = *rc::gen::element<uint32_t>(2, 3, 5);
  o.max_tokens = *rc::gen::element<uint64_t>(1, 9, 16, 33, 60);
  o.window = *rc::gen::element<uint32_t>(0, 0, 3);
  o.threads = *rc::gen::element<uint32_t>(1, 2);
  o.k_type = type();
  o.v_type = type();
  o.poison = *rc::gen::arbitrary<bool>();
  return o;
}

std::string text_of(const SessionOptions& o) {
  std::ostringstream text;
  text << o.device << ", page_tokens " << o.page_tokens << ", max_batch_tokens " << o.batch << ", max_sequences "
       << o.max_sequences << ", max_tokens " << o.max_tokens << ", window " << o.window << ", threads " << o.threads
       << ", k " << kv_type_name(o.k_type) << ", v " << kv_type_name(o.v_type) << (o.poison ? ", poison" : "");
  return text.str();
}

void hold(const SessionOptions& options, const std::vector<Command>& commands) {
  Session session(options);
  std::string wrong;
  for (const Command& command : commands) {
    wrong = session.run(command);
    if (!wrong.empty()) break;
  }
  if (wrong.empty()) wrong = session.finish();
  if (!wrong.empty()) RC_FAIL(text_of(options) + "\n" + session.log() + "-> " + wrong);
}

class State : public ::testing::TestWithParam<std::string> {};

TEST_P(State, BeforeIsStateAfter) {
#if defined(KV_TEST_DEEP)
  constexpr int kRounds = 40;
#else
  constexpr int kRounds = 1;
#endif
  for (int round = 0; round < kRounds; round++) {
    ASSERT_TRUE(rc::check("the context and its model agree after every call", [&] {
      const SessionOptions options = draw_options(GetParam());
      hold(options, *rc::gen::arbitrary<std::vector<Command>>());
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, State, ::testing::Values("faulty_ref", "faulty_cpu"),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kvasir::test
