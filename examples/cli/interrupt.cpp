// SPDX-License-Identifier: MIT
//
// kv_cancel_set is safe in a signal handler.
#include "interrupt.h"

#include <csignal>

#include "common/kv.h"

namespace kvasir::cli {
namespace {

kv_cancel* interrupted = nullptr;  // written once, before the handler is installed

extern "C" void on_interrupt(int) { kv_cancel_set(interrupted); }

}  // namespace

const kv_cancel* catch_interrupt() {
  if (interrupted != nullptr) return interrupted;
  static const CancelPtr owner = make<CancelPtr>(kv_cancel_create);
  interrupted = owner.get();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal kills
  sigaction(SIGINT, &action, nullptr);
  return interrupted;
}

}  // namespace kvasir::cli
