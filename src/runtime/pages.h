// SPDX-License-Identifier: MIT
//
// Pages: who uses which page of the cache. Pure bookkeeping, no device: reference counts, the free list, and how many
// rows of each page are in use. All cache groups of a context have the same pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir {

class Pages {
 public:
  explicit Pages(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  uint32_t page_tokens() const { return page_tokens_; }
  uint32_t count() const { return static_cast<uint32_t>(pages_.size()); }  // on the device
  uint32_t free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t shared() const;                 // used by more than one sequence
  uint64_t rows() const { return rows_; }  // in use, shared ones counted once

  // Room for that many pages. The only call that can throw (bad_alloc, nothing changed).
  void reserve(uint32_t count);
  // Pages [count(), new_count) exist now and are free. new_count has been reserved.
  void grow(uint32_t new_count) noexcept;

  uint32_t take() noexcept;  // a free page (there must be one), used once, 0 rows
  void retain(uint32_t page) noexcept;
  bool release(uint32_t page) noexcept;  // true when nobody uses it any more
  uint32_t users(uint32_t page) const { return pages_[page].users; }

  void set_rows(uint32_t page, uint32_t rows) noexcept;  // rows in use: the most that any user holds

 private:
  struct Page {
    uint32_t users = 0;
    uint32_t rows = 0;
  };
  uint32_t page_tokens_;
  uint64_t rows_ = 0;
  std::vector<Page> pages_;
  std::vector<uint32_t> free_;  // capacity is that of pages_, so giving back cannot fail
};

}  // namespace kvasir
