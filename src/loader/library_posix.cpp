// SPDX-License-Identifier: MIT
#include "loader/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cfenv>
#include <charconv>
#include <cstdint>
#include <fstream>

namespace kvasir {
namespace {

#ifdef RTLD_NODELETE
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#endif

// A line is "from-to access offset device inode    path", the numbers in hexadecimal.
bool line_holds(const std::string& line, uintptr_t address) {
  uintptr_t from = 0, to = 0;
  const char* end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, from, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, end, to, 16);
  return second.ec == std::errc() && address >= from && address < to;
}

std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line_holds(line, reinterpret_cast<uintptr_t>(address))) continue;
    const size_t slash = line.find('/');
    return slash == std::string::npos ? std::string() : line.substr(slash);
  }
  return {};
}

}  // namespace

Status open_library(const std::string& path, void** out_library) {
  // Constructors of libraries built with fast-math options switch denormals off for the calling thread.
  std::fenv_t caller_state;
  std::fegetenv(&caller_state);
  void* library = dlopen(path.c_str(), kOpenFlags);
  std::fesetenv(&caller_state);
  if (library == nullptr) {
    const char* text = dlerror();
    return Status::error(KV_IO, "'%.250s' cannot be loaded: %s", path.c_str(), text ? text : "no reason given");
  }
  *out_library = library;
  return {};
}

void* library_symbol(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    dlerror();  // takes the text away: the next failure of somebody else must not find it
    return nullptr;
  }
  // dlsym also looks into what the library depends on; a plugin that happens to link another one has no entry itself.
  link_map* owner = nullptr;
  link_map* opened = nullptr;
  Dl_info info;
  if (dladdr1(symbol, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) == 0) return nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &opened) != 0) return nullptr;
  return owner == opened ? symbol : nullptr;
}

std::string file_of_address(const void* address) {
  Dl_info info;
  link_map* object = nullptr;
  const int known = dladdr1(address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
  if (known != 0 && object != nullptr && object->l_name[0] == '/') return object->l_name;
  // The main program has no name here, and dli_fname would be argv[0], which the caller of a set-user-id program
  // chooses. A relative name is relative to a directory that may have changed since. The kernel knows in both cases.
  return mapped_file(address);
}

}  // namespace kvasir
