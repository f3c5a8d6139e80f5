// SPDX-License-Identifier: MIT
//
// Opening the plugin, running cases, judging what they left behind.
#include "worker.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "catalogue.h"
#include "messages.h"
#include "surroundings.h"

namespace kvasir::conformance {
namespace {

using testing::TestHost;

void send(int pipe, const Message& message) {
  const std::string line = to_line(message);
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = write(pipe, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR) _exit(1);  // the supervisor is gone
    if (written > 0) done += static_cast<size_t>(written);
  }
}

kvb_query_fn open_plugin(const std::string& path) {
  // A bare name would be searched for on the library path.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Failed(std::string("cannot be opened: ") + dlerror());
  void* entry = dlsym(library, KVB_ENTRY_SYMBOL);
  if (entry == nullptr) throw Failed("has no symbol " KVB_ENTRY_SYMBOL);
  return reinterpret_cast<kvb_query_fn>(entry);
}

void describe_device(const kvb_api& api, kvb_instance* instance, const std::string& variant, PluginFacts* facts) {
  kv_error error{};
  kvb_device_info info{};
  info.struct_size = sizeof info;
  testing::expect_ok(api.device_info(instance, 0, &info, &error), error, "device_info");
  facts->device.assign(info.name, strnlen(info.name, sizeof info.name));
  facts->driver.assign(info.driver, strnlen(info.driver, sizeof info.driver));
  facts->kind = info.kind;
  facts->memory_total = info.memory_total;
  const kvb_device_options options{sizeof options, 0, variant.empty() ? nullptr : variant.c_str()};
  kvb_device* device = nullptr;
  testing::expect_ok(api.device_open(instance, 0, &options, &device, &error), error, "device_open");
  if (const char* used = api.device_variant(device)) facts->variant = used;
  api.device_close(device);
}

// Throws when no case can run with what the plugin gives.
PluginFacts describe(kvb_query_fn query, const std::string& variant) {
  TestHost host;
  kv_error error{};
  const kvb_api* api = query(&host.table, &error);
  check(api != nullptr, std::string("the query gave no table: ") + error.message);
  check(api->abi_version == KVB_ABI_VERSION && api->struct_size >= sizeof(kvb_api),
        "the table has ABI version " + std::to_string(api->abi_version) + " and " + std::to_string(api->struct_size) +
            " bytes, this suite needs " + std::to_string(KVB_ABI_VERSION) + " and " + std::to_string(sizeof(kvb_api)));
  PluginFacts facts;
  facts.abi_version = api->abi_version;
  if (api->name != nullptr) facts.name = api->name;
  if (api->version != nullptr) facts.version = api->version;
  kvb_instance* instance = nullptr;
  testing::expect_ok(api->instance_create(&host.table, &instance, &error), error, "instance_create");
  const testing::Owned<kvb_instance> owner{instance, api->instance_destroy};
  char reason[512] = "";
  testing::expect_ok(api->device_count(instance, &facts.devices, reason, sizeof reason, &error), error, "device_count");
  facts.no_device.assign(reason, strnlen(reason, sizeof reason));
  if (facts.devices > 0) {
    describe_device(*api, instance, variant, &facts);
  } else {
    check(!facts.no_device.empty(), "there are 0 devices, and device_count gives no reason");
  }
  return facts;
}

// Runs `body` and says how it ended; what it did to the process counts as a failure of it.
class Judge {
 public:
  explicit Judge(const Capture& capture) : capture_(capture) {}

  template <typename Body>
  Outcome run(Profile profile, Body&& body) {
    const Surroundings before;
    testing::host_faults.reset();
    Outcome outcome;
    const auto start = std::chrono::steady_clock::now();
    try {
      body();
    } catch (const Unsupported& unsupported) {
      outcome.result = profile == Profile::kCore ? Result::kFail : Result::kUnsupported;
      outcome.reason = profile == Profile::kCore ? "a case of the core profile is unsupported: " : "";
      outcome.reason += unsupported.what();
    } catch (const std::exception& exception) {
      fail(outcome, exception.what());
    } catch (...) {
      fail(outcome, "the backend threw something across its table");
    }
    outcome.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const std::string changed = before.changes();
    if (!changed.empty()) fail(outcome, changed);
    judge_host(outcome);
    if (const std::string printed = capture_.taken(); !printed.empty()) {
      fail(outcome, "the plugin printed \"" + printed + "\"");
    }
    return outcome;
  }

 private:
  static void fail(Outcome& outcome, const std::string& sentence) {
    outcome.reason = outcome.result == Result::kFail ? outcome.reason + "; " + sentence : sentence;
    outcome.result = Result::kFail;
  }

  // A failed case may have left objects behind itself, so only misuse counts then.
  static void judge_host(Outcome& outcome) {
    const testing::HostFaults& faults = testing::host_faults;
    if (faults.mismatched > 0) {
      fail(outcome, std::to_string(faults.mismatched) +
                        " blocks were given back to the host's allocator with another size or alignment");
    }
    if (faults.overrun > 0) fail(outcome, std::to_string(faults.overrun) + " host blocks were written past their end");
    if (faults.abandoned > 0 && outcome.result != Result::kFail) {
      fail(outcome, std::to_string(faults.abandoned) + " blocks were not given back to the host's allocator");
    }
  }

  const Capture& capture_;
};

}  // namespace

void work(const std::vector<Case>& cases, size_t first, const Options& options, int pipe, int capture_file) {
  const Capture capture(capture_file);
  capture.take_standard_streams();
  Judge judge(capture);
  Subject subject;
  subject.path = options.plugin;
  subject.variant = options.variant;

  std::optional<PluginFacts> facts;
  const Outcome opening = judge.run(Profile::kCore, [&] {
    subject.query = open_plugin(options.plugin);
    facts = describe(subject.query, options.variant);
  });
  Message message;
  message.kind = facts ? MessageKind::kOpened : MessageKind::kRefused;
  message.refusal = opening.reason;
  if (facts) message.facts = *facts;
  send(pipe, message);
  if (!facts || facts->devices == 0) _exit(0);

  for (size_t i = first; i < cases.size(); ++i) {
    message.index = i;
    message.kind = MessageKind::kBegin;
    send(pipe, message);
    subject.figures.clear();
    message.outcome =
        cases[i].name == kOpenCase ? opening : judge.run(cases[i].profile, [&] { cases[i].run(subject); });
    message.outcome.figures = subject.figures;
    message.kind = MessageKind::kEnd;
    send(pipe, message);
  }
  _exit(0);
}

}  // namespace kvasir::conformance
