// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "api/handles.h"

namespace kvasir::api {

// Makes the handle of a new model.
Status wrap(std::shared_ptr<Model> model, kv_model** out);

}  // namespace kvasir::api
