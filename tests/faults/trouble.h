// SPDX-License-Identifier: MIT
//
// Makes one call fail on purpose: in the allocator, in the backend, in malloc, or by a cancel at a chosen moment.
#pragma once

#include <atomic>
#include <cstdlib>
#include <thread>

#include "faults/faulty_backend.h"
#include "faults/injector.h"
#include "faults/session.h"

namespace kvasir::test {

// A kv_allocator whose n-th block is refused, alone or with all that follow.
struct HookedAllocator {
  uint64_t left = 0;
  bool persistent = false, fired = false;
  std::atomic<int64_t> live{0};

  kv_allocator table() { return {this, alloc, release}; }
  static void* alloc(void* user, size_t size, size_t align) {
    auto* self = static_cast<HookedAllocator*>(user);
    if ((self->left != 0 && --self->left == 0) || (self->persistent && self->fired)) {
      self->fired = true;
      return nullptr;
    }
    void* memory = nullptr;
    const size_t least = align < sizeof(void*) ? sizeof(void*) : align;
    if (posix_memalign(&memory, least, size == 0 ? 1 : size) != 0) return nullptr;
    self->live++;
    return memory;
  }
  static void release(void* user, void* memory, size_t, size_t) {
    static_cast<HookedAllocator*>(user)->live--;
    std::free(memory);
  }
};
inline HookedAllocator hooked_allocator;

constexpr kv_status kBackendStatuses[] = {KV_INTERNAL, KV_OUT_OF_MEMORY, KV_IO};

// While it lives the trouble of a command is armed; call() is what it may strike.
class Troubled {
 public:
  explicit Troubled(const Command& command)
      : trouble_(command.trouble),
        faults_(trouble_ == Trouble::kMalloc ? uint32_t{kMemory} : 0, command.at + 1U,
                command.keep != (command.at % 2 == 0)) {
    if (trouble_ == Trouble::kAllocator) {
      hooked_allocator.fired = false;
      hooked_allocator.persistent = command.at % 2 == 1;
      hooked_allocator.left = command.at / 2U + 1;
    }
    if (trouble_ == Trouble::kBackend) {
      backend_fault = {kBackendStatuses[command.at % 3], command.at / 3U + 1, command.at % 2 == 1, false};
    }
    if (!cancels()) return;
    Error e;
    kv_cancel* made = nullptr;
    if (kv_cancel_create(&made, &e) != KV_OK) ADD_FAILURE() << e.message;
    cancel.reset(made);
    countdown = command.at % 8U + 1;
    if (trouble_ == Trouble::kCancelled) kv_cancel_set(made);
    if (trouble_ == Trouble::kCancelFromThread) {
      thread_ = std::thread([this, made, turns = command.at * 100U] {
        while (!started_) {
        }
        std::atomic<uint32_t> turn{0};
        while (turn.fetch_add(1) < turns) {
        }
        kv_cancel_set(made);
      });
    }
  }
  ~Troubled() {
    started_ = true;
    if (thread_.joinable()) thread_.join();
    stop();
  }
  Troubled(const Troubled&) = delete;
  Troubled& operator=(const Troubled&) = delete;

  template <class F>
  kv_status call(F&& function) {
    started_ = true;
    const kv_status status = trouble_ == Trouble::kMalloc ? failing(function) : function();
    stop();
    return status;
  }

  bool cancels() const { return trouble_ >= Trouble::kCancelled; }
  // Whether something has been made to fail, or may have been.
  bool fired() const {
    switch (trouble_) {
      case Trouble::kNone: return false;
      case Trouble::kAllocator: return hooked_allocator.fired;
      case Trouble::kBackend: return backend_fault.fired;
      case Trouble::kMalloc: return faults_.fired();
      default: return kv_cancel_is_set(cancel.get()) != 0;
    }
  }
  kv_status status() const {
    if (cancels()) return KV_CANCELLED;
    return trouble_ == Trouble::kBackend ? backend_fault.status : KV_OUT_OF_MEMORY;
  }

  CancelPtr cancel;
  uint32_t countdown = 0;  // of progress or row callbacks until the cancel

 private:
  static void stop() {
    hooked_allocator.left = 0;
    hooked_allocator.persistent = false;
    backend_fault.calls_left = 0;
  }

  const Trouble trouble_;
  Faults faults_;
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace kvasir::test
