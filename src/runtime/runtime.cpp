// SPDX-License-Identifier: MIT
#include "runtime/runtime.h"

#include <utility>

namespace kvasir {

Runtime::Runtime(const kv_runtime_options& options)
    : log_{options.log, options.log_user},
      allocator_(options.allocator != nullptr ? *options.allocator : default_allocator()) {
  kvb_host host = {};
  host.log = options.log;
  host.log_user = options.log_user;
  host.allocator = allocator_;
  host.parallel_for = options.parallel_for;
  host.parallel_user = options.parallel_user;
  LoaderOptions loader;
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
  std::shared_ptr<Runtime> runtime(new Runtime(options));
  // Only a runtime that the application gets to see reports its end.
  runtime->destroyed_ = options.destroyed;
  runtime->destroyed_user_ = options.destroyed_user;
  *out = std::move(runtime);
  return {};
}

Runtime::~Runtime() {
  registry_.reset();  // plugins may still log while their instances end
  if (destroyed_ != nullptr) destroyed_(destroyed_user_);
}

}  // namespace kvasir
