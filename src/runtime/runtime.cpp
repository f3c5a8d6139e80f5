// SPDX-License-Identifier: MIT
#include "runtime/runtime.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/float_state.h"

namespace kvasir {

namespace {

// "/a:/b" as a list. Empty elements are skipped, relative ones refused.
Status split_directories(const char* path, std::vector<std::string>* out) {
  std::vector<std::string> directories;
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one.empty()) continue;
    KV_CHECK(one.front() == '/', KV_INVALID_ARGUMENT, "backend_path: '%.*s' is not an absolute directory",
             static_cast<int>(std::min<size_t>(one.size(), 400)), one.data());
    directories.emplace_back(one);
  }
  *out = std::move(directories);
  return {};
}

}  // namespace

Runtime::Runtime(const kv_runtime_options& options, std::vector<std::string> directories)
    : log_{options.log, options.log_user},
      allocator_(options.allocator != nullptr ? *options.allocator : default_allocator()),
      parallel_for_(options.parallel_for),
      parallel_user_(options.parallel_user) {
  kvb_host host = {};
  host.log = options.log != nullptr ? forward_log : nullptr;
  host.log_user = this;
  host.allocator = allocator_;
  host.parallel_for = options.parallel_for != nullptr ? forward_parallel_for : nullptr;
  host.parallel_user = this;
  LoaderOptions loader;
  loader.directories = std::move(directories);
  loader.ignore_environment = (options.flags & KV_RUNTIME_IGNORE_ENVIRONMENT) != 0;
  loader.no_search = (options.flags & KV_RUNTIME_NO_SEARCH) != 0;
  loader.allow_untrusted_paths = (options.flags & KV_RUNTIME_ALLOW_UNTRUSTED) != 0;
  registry_ = std::make_unique<Registry>(std::move(loader), host);
}

Status Runtime::create(const kv_runtime_options& options, std::shared_ptr<Runtime>* out) {
  constexpr uint32_t kKnown = KV_RUNTIME_IGNORE_ENVIRONMENT | KV_RUNTIME_NO_SEARCH | KV_RUNTIME_ALLOW_UNTRUSTED;
  KV_CHECK((options.flags & ~kKnown) == 0, KV_UNSUPPORTED, "runtime flags 0x%x are not known", options.flags & ~kKnown);
  if (options.allocator != nullptr) {
    KV_CHECK(options.allocator->alloc != nullptr && options.allocator->release != nullptr, KV_INVALID_ARGUMENT,
             "the allocator needs both alloc and release");
  }
  std::vector<std::string> directories;
  KV_RETURN_IF_ERROR(split_directories(options.backend_path, &directories));
  std::shared_ptr<Runtime> runtime(new Runtime(options, std::move(directories)));
  // Only a runtime that the application gets to see reports its end.
  runtime->destroyed_ = options.destroyed;
  runtime->destroyed_user_ = options.destroyed_user;
  *out = std::move(runtime);
  return {};
}

Runtime::~Runtime() {
  registry_.reset();  // plugins may still log while their instances end
  if (destroyed_ == nullptr) return;
  const HostFloatState floats;
  destroyed_(destroyed_user_);
}

void Runtime::forward_log(void* self, int32_t level, const char* text, size_t length) {
  const Log& log = static_cast<Runtime*>(self)->log_;
  const HostFloatState floats;
  log.sink(log.user, level, text, length);
}

void Runtime::forward_parallel_for(void* self, uint32_t count, kv_parallel_body_fn body, void* arg) {
  const Runtime& runtime = *static_cast<Runtime*>(self);
  const HostFloatState floats;
  runtime.parallel_for_(runtime.parallel_user_, count, body, arg);
}

}  // namespace kvasir
