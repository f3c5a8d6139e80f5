// SPDX-License-Identifier: MIT
#include "loader/negotiate.h"

#include <cstddef>
#include <cstring>

#include "loader/plugin_call.h"

namespace kvasir {
namespace {

constexpr size_t kLongestText = 64;  // of name and version; a table with a wild pointer is not read far

struct Entry {
  const char* name;
  bool present;
};

#define KV_ENTRY(member) \
  { #member, api.member != nullptr }

Status check_entries(const kvb_api& api) {
  const Entry entries[] = {
      KV_ENTRY(instance_create),   KV_ENTRY(instance_destroy), KV_ENTRY(device_count),     KV_ENTRY(device_info),
      KV_ENTRY(device_open),       KV_ENTRY(device_close),     KV_ENTRY(device_query),     KV_ENTRY(device_variant),
      KV_ENTRY(weight_memory),     KV_ENTRY(weight_create),    KV_ENTRY(weight_destroy),   KV_ENTRY(cache_memory),
      KV_ENTRY(cache_create),      KV_ENTRY(cache_destroy),    KV_ENTRY(cache_resize),     KV_ENTRY(cache_copy_rows),
      KV_ENTRY(cache_poison_page), KV_ENTRY(cache_read_rows),  KV_ENTRY(cache_write_rows), KV_ENTRY(program_check),
      KV_ENTRY(program_memory),    KV_ENTRY(program_compile),  KV_ENTRY(program_destroy),  KV_ENTRY(queue_create),
      KV_ENTRY(queue_destroy),     KV_ENTRY(queue_submit),     KV_ENTRY(queue_wait),       KV_ENTRY(extension),
  };
  constexpr size_t kOptional = 1;  // cache_move_rows
  constexpr size_t kPointers = (sizeof(kvb_api) - offsetof(kvb_api, instance_create)) / sizeof(void (*)());
  static_assert(sizeof entries / sizeof entries[0] + kOptional == kPointers, "a pointer of kvb_api is not listed");

  for (const Entry& entry : entries)
    KV_CHECK(entry.present, KV_INCOMPATIBLE, "its table lacks the mandatory function %s", entry.name);
  return {};
}

#undef KV_ENTRY

Status check_table(const kvb_api& api, std::string_view name) {
  // Another draft may have another layout, so nothing behind these two words is read before they are right.
  KV_CHECK(api.abi_version == KVB_ABI_VERSION, KV_INCOMPATIBLE,
           "it was built for backend ABI %u draft %u, this library has %u draft %u", api.abi_version >> 16,
           api.abi_version & 0xffffu, static_cast<unsigned>(KVB_ABI_MAJOR), static_cast<unsigned>(KVB_ABI_DRAFT));
  KV_CHECK(api.struct_size >= sizeof(kvb_api), KV_INCOMPATIBLE, "its table has %u bytes, %zu are needed",
           api.struct_size, sizeof(kvb_api));
  KV_CHECK(api.name != nullptr, KV_INCOMPATIBLE, "its table has no name");
  const std::string_view own_name(api.name, strnlen(api.name, kLongestText));
  KV_CHECK(own_name == name, KV_INCOMPATIBLE, "it calls itself '%.*s', its file name says '%.*s'",
           static_cast<int>(own_name.size()), own_name.data(), static_cast<int>(name.size()), name.data());
  KV_CHECK(api.version != nullptr && api.version[0] != '\0', KV_INCOMPATIBLE, "its table has no version");
  KV_CHECK(strnlen(api.version, kLongestText) < kLongestText, KV_INCOMPATIBLE, "its version has more than %zu bytes",
           kLongestText - 1);
  return check_entries(api);
}

Status declined(const kv_error& error) {
  const Status reason = Status::from(error);
  const bool silent = reason.message()[0] == '\0';
  KV_CHECK(error.code != KV_OK || !silent, KV_INCOMPATIBLE, "it declined to serve this library and gave no reason");
  return Status::error(error.code != KV_OK ? error.code : KV_INCOMPATIBLE, "it declined to serve this library: %s",
                       silent ? "no reason given" : reason.message());
}

}  // namespace

Status negotiate(kvb_query_fn query, std::string_view name, const kvb_host& host, const kvb_api** out) {
  kv_error error = {};
  error.struct_size = sizeof error;
  const kvb_api* api = nullptr;
  KV_RETURN_IF_ERROR(call_plugin("its entry function", [&]() -> Status {
    api = query(&host, &error);
    return {};
  }));
  if (api == nullptr) return declined(error);
  KV_RETURN_IF_ERROR(check_table(*api, name));
  *out = api;
  return {};
}

}  // namespace kvasir
