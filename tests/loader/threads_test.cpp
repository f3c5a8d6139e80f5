// SPDX-License-Identifier: MIT
//
// Registries in several threads: two that share nothing but the process and the plugin file, and one that is shared.
#include <functional>
#include <thread>

#include "built_in.h"
#include "support.h"

namespace kvasir::test {
namespace {

void run_together(int count, const std::function<void(int)>& body) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LoaderThreads, TheSamePathFromTwoRuntimesAtOnce) {
  Scratch scratch;
  const std::string place = scratch.directory("place");
  const std::string good = put("good", place);
  put_text(place + "/" + file_of("text"));
  for (int round = 0; round < 20; ++round) {
    Host hosts[2];
    const kvb_api* apis[2] = {};
    run_together(2, [&](int i) {
      Registry registry(only({place}), hosts[i].services());
      const Backend* backend = nullptr;
      EXPECT_TRUE(registry.load(good, &backend).ok());
      registry.scan();
      EXPECT_TRUE(fails_with(registry.find("text", &backend), KV_IO, file_of("text")));
      ASSERT_TRUE(registry.find("good", &backend).ok());
      EXPECT_EQ(backend->instance->host.log_user, &hosts[i]);
      apis[i] = backend->api;
    });
    EXPECT_EQ(apis[0], apis[1]) << "one file, one copy of its code";
  }
}

TEST(LoaderThreads, OneRegistryForAll) {
  Scratch scratch;
  const std::string good = put("good", scratch.directory("place"));
  put("other", scratch.root() + "/place");
  for (Behaviour* behaviour : {&cpu, &vulkan, &cuda, &ref}) behaviour->reset();
  cpu.kinds = {KVB_DEVICE_CPU};
  Host host;
  Registry registry(only({scratch.root() + "/place"}, kBuiltIn), host.services());
  const Backend* found[8] = {};
  run_together(8, [&](int i) {
    Choice choice;
    EXPECT_TRUE(registry.choose(i % 2 == 0 ? "auto" : "cpu", &choice).ok());
    if (i % 3 == 0) registry.scan();
    EXPECT_FALSE(registry.report().empty());
    EXPECT_TRUE(registry.load(good, nullptr).ok());
    EXPECT_TRUE(registry.find("good", &found[i]).ok());
  });
  EXPECT_EQ(cpu.created, 1);
  for (const Backend* backend : found) EXPECT_EQ(backend, found[0]);
}

}  // namespace
}  // namespace kvasir::test
