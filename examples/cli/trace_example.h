// SPDX-License-Identifier: MIT
//
// `kvasir trace --example`: a worked example token by token, from the cache.
#pragma once

#include "options.h"

namespace kvasir::cli {

// number: 1, 2 or 3. The cache is f32 unless the flags say otherwise.
int run_example(int number, DeviceFlags flags);

}  // namespace kvasir::cli
