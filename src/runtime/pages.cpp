// SPDX-License-Identifier: MIT
#include "runtime/pages.h"

#include <algorithm>

namespace kvasir {

uint32_t Pages::shared() const {
  return static_cast<uint32_t>(std::count_if(pages_.begin(), pages_.end(), [](const Page& p) { return p.users > 1; }));
}

void Pages::reserve(uint32_t count) {
  free_.reserve(count);
  pages_.reserve(count);
}

void Pages::grow(uint32_t new_count) noexcept {
  // The newest page is taken last: low page numbers stay together.
  const uint32_t old_count = count();
  pages_.resize(new_count);
  for (uint32_t page = new_count; page > old_count; page--) free_.push_back(page - 1);
}

uint32_t Pages::take() noexcept {
  const uint32_t page = free_.back();
  free_.pop_back();
  pages_[page].users = 1;
  return page;
}

void Pages::retain(uint32_t page) noexcept { pages_[page].users++; }

bool Pages::release(uint32_t page) noexcept {
  if (--pages_[page].users != 0) return false;
  set_rows(page, 0);
  free_.push_back(page);
  return true;
}

void Pages::set_rows(uint32_t page, uint32_t rows) noexcept {
  rows_ = rows_ - pages_[page].rows + rows;
  pages_[page].rows = rows;
}

}  // namespace kvasir
