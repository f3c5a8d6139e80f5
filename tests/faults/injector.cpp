// SPDX-License-Identifier: MIT
//
// The interposed functions. They must not allocate, and run before main.
#include "faults/injector.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KV_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KV_TEST_SANITIZED 1
#endif
#endif

namespace kvasir::test {
namespace {

struct Plan {
  uint32_t kinds;
  bool persistent, fired, armed;
  uint64_t n, seen;
};

constinit thread_local Plan plan{};
constinit std::atomic<int64_t> blocks{0};

#if !defined(KV_TEST_SANITIZED)

bool fails(uint32_t kind, int error) {
  if (!plan.armed || (plan.kinds & kind) == 0) return false;
  plan.seen++;
  if (plan.seen != plan.n && !(plan.persistent && plan.fired)) return false;
  plan.fired = true;
  errno = error;
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) blocks.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

// The function that is interposed.
template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

#endif

}  // namespace

bool can_inject() {
#if defined(KV_TEST_SANITIZED)
  return false;
#else
  return true;
#endif
}

Faults::Faults(uint32_t kinds, uint64_t n, bool persistent) { plan = {kinds, persistent, false, false, n, 0}; }
Faults::~Faults() { plan = {}; }
uint64_t Faults::seen() const { return plan.seen; }
bool Faults::fired() const { return plan.fired; }
Armed::Armed() { plan.armed = true; }
Armed::~Armed() { plan.armed = false; }
Disarmed::Disarmed() : before_(plan.armed) { plan.armed = false; }
Disarmed::~Disarmed() { plan.armed = before_; }
int64_t live_blocks() { return blocks.load(std::memory_order_relaxed); }

}  // namespace kvasir::test

#if !defined(KV_TEST_SANITIZED)

using kvasir::test::blocks;
using kvasir::test::counted;
using kvasir::test::fails;
using kvasir::test::kFiles;
using kvasir::test::kMemory;
using kvasir::test::kThreads;
using kvasir::test::next;

#pragma GCC visibility push(default)  // the program's own, and seen by every library of the process
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t align, size_t size);
void __libc_free(void* memory);

void* malloc(size_t size) { return fails(kMemory, ENOMEM) ? nullptr : counted(__libc_malloc(size)); }

void* calloc(size_t count, size_t size) {
  return fails(kMemory, ENOMEM) ? nullptr : counted(__libc_calloc(count, size));
}

void* realloc(void* memory, size_t size) {
  if (size != 0 && fails(kMemory, ENOMEM)) return nullptr;
  void* moved = __libc_realloc(memory, size);
  if (memory == nullptr) return counted(moved);
  if (size == 0) blocks.fetch_sub(1, std::memory_order_relaxed);
  return moved;
}

void* reallocarray(void* memory, size_t count, size_t size) {
  size_t bytes = 0;
  if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}

void* memalign(size_t align, size_t size) {
  return fails(kMemory, ENOMEM) ? nullptr : counted(__libc_memalign(align, size));
}

void* aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

int posix_memalign(void** out, size_t align, size_t size) {
  void* memory = memalign(align, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

void free(void* memory) {
  if (memory != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static auto* const real = next<decltype(pthread_create)>("pthread_create");
  return fails(kThreads, EAGAIN) ? EAGAIN : real(thread, attributes, body, argument);
}

int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return fails(kFiles, EMFILE) ? -1 : real(path, flags, mode);
}

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  static auto* const real = next<decltype(pread)>("pread");
  return fails(kFiles, EIO) ? -1 : real(file, data, bytes, offset);
}

int fstat(int file, struct stat* out) noexcept {
  static auto* const real = next<int(int, struct stat*)>("fstat");
  return fails(kFiles, EIO) ? -1 : real(file, out);
}

int stat(const char* path, struct stat* out) noexcept {
  static auto* const real = next<int(const char*, struct stat*)>("stat");
  return fails(kFiles, EIO) ? -1 : real(path, out);
}

int lstat(const char* path, struct stat* out) noexcept {
  static auto* const real = next<int(const char*, struct stat*)>("lstat");
  return fails(kFiles, EIO) ? -1 : real(path, out);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return fails(kFiles, ENODEV) ? MAP_FAILED : real(address, bytes, protection, flags, file, offset);
}

DIR* opendir(const char* path) {
  static auto* const real = next<DIR*(const char*)>("opendir");
  return fails(kFiles, EMFILE) ? nullptr : real(path);
}

FILE* fopen(const char* path, const char* mode) {
  static auto* const real = next<FILE*(const char*, const char*)>("fopen");
  return fails(kFiles, EMFILE) ? nullptr : real(path, mode);
}

}  // extern "C"
#pragma GCC visibility pop

#endif
