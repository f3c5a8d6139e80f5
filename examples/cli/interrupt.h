// SPDX-License-Identifier: MIT
//
// Ctrl-C: the first one sets a flag that long calls of the library look at, the second one ends the process.
#pragma once

#include "kvasir/kvasir.h"

namespace kvasir::cli {

// Installs the handler and returns the flag; it lives as long as the process.
const kv_cancel* catch_interrupt();

}  // namespace kvasir::cli
