// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace kvasir {

void Log::operator()(int32_t level, const char* format, ...) const {
  if (sink == nullptr) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  sink(user, level, text, std::min(static_cast<size_t>(length), sizeof text - 1));
}

}  // namespace kvasir
