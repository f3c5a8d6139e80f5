// SPDX-License-Identifier: MIT
//
// Runtime: what an application lends (log, allocator, executor) and the backends found for it. Owned by handles, models
// and contexts together; everything else of one application hangs off it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "kvasir/kvasir.h"
#include "loader/registry.h"

namespace kvasir {

class Runtime {
 public:
  // `options` has been copied in: absent fields are zero.
  static Status create(const kv_runtime_options& options, std::shared_ptr<Runtime>* out);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Log& log() const { return log_; }
  const kv_allocator& allocator() const { return allocator_; }
  Registry& registry() { return *registry_; }

 private:
  Runtime(const kv_runtime_options& options, std::vector<std::string> directories);
  // What plugins get instead of the application's own functions; `self` is the runtime.
  static void forward_log(void* self, int32_t level, const char* text, size_t length);
  static void forward_parallel_for(void* self, uint32_t count, kv_parallel_body_fn body, void* arg);

  Log log_;
  kv_allocator allocator_;
  kv_parallel_for_fn parallel_for_ = nullptr;
  void* parallel_user_ = nullptr;
  std::unique_ptr<Registry> registry_;
  void (*destroyed_)(void*) = nullptr;
  void* destroyed_user_ = nullptr;
};

}  // namespace kvasir
