// SPDX-License-Identifier: MIT
//
// The first words between the runtime and a plugin: calls the entry function and checks the table it hands out. Nothing
// in the table is used before it has passed here.
#pragma once

#include <string_view>

#include "base/status.h"
#include "kvasir/backend.h"

namespace kvasir {

// `name` is what the file name says. KV_INCOMPATIBLE: another ABI, or a table that is not as backend.h demands.
Status negotiate(kvb_query_fn query, std::string_view name, const kvb_host& host, const kvb_api** out);

}  // namespace kvasir
