// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/float_state.h"
#include "base/one_line.h"

namespace kvasir {

void Log::operator()(int32_t level, const char* format, ...) const {
  if (sink == nullptr) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  const size_t kept = std::min(static_cast<size_t>(length), sizeof text - 1);
  make_one_line(text, text + kept);
  const HostFloatState floats;
  sink(user, level, text, kept);
}

}  // namespace kvasir
