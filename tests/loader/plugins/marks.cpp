// SPDX-License-Identifier: MIT
//
// Leaves a file <its own path>.opened when it is opened. Goes by any name, and has no device.
#include <dlfcn.h>

#include <string>

#include "stub.h"

namespace {

// Of this file, as it was opened.
std::string own_path() {
  Dl_info info;
  return dladdr(reinterpret_cast<const void*>(&own_path), &info) != 0 ? info.dli_fname : "";
}

__attribute__((constructor)) void leave_a_mark() {
  if (FILE* mark = std::fopen((own_path() + ".opened").c_str(), "w")) std::fclose(mark);
}

kv_status no_device(kvb_instance*, uint32_t* out, char* reason, size_t capacity, kv_error*) {
  *out = 0;
  if (reason != nullptr) std::snprintf(reason, capacity, "its driver libdriver.so.1 is not there");
  return KV_OK;
}

std::string name_in(const std::string& path) {
  const std::string mark = "libkvasir_backend_";
  const size_t first = path.rfind(mark) + mark.size();
  return path.substr(first, path.rfind(".v") - first);
}

}  // namespace

KV_STUB_ENTRY(const kvb_host*, kv_error*) {
  static const std::string name = name_in(own_path());
  static const kvb_api api = [] {
    kvb_api table = stub::table(name.c_str());
    table.device_count = no_device;
    return table;
  }();
  return &api;
}
