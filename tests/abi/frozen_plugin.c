/* SPDX-License-Identifier: MIT
 *
 * A plugin as somebody wrote it for version 0.1: one device, nothing behind it. Compiled with every frozen backend.h.
 * KV_DRAFT_SHIFT makes it one of another draft. */
#include <stdlib.h>
#include <string.h>

#include "kvasir/backend.h"

#ifndef KV_DRAFT_SHIFT
#define KV_DRAFT_SHIFT 0
#endif

struct kvb_instance {
  kvb_host host;
};

static kv_status instance_create(const kvb_host* host, kvb_instance** out, kv_error* error) {
  (void)error;
  *out = malloc(sizeof **out);
  if (*out == NULL) return KV_OUT_OF_MEMORY;
  (*out)->host = *host;
  return KV_OK;
}

static void instance_destroy(kvb_instance* instance) { free(instance); }

static kv_status device_count(kvb_instance* instance, uint32_t* out, char* reason, size_t capacity, kv_error* error) {
  (void)instance, (void)reason, (void)capacity, (void)error;
  *out = 1;
  return KV_OK;
}

static kv_status device_info(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error) {
  (void)instance, (void)index, (void)error;
  out->kind = KVB_DEVICE_OTHER;
  strcpy(out->name, "frozen");
  return KV_OK;
}

static kv_status unsupported(void) { return KV_UNSUPPORTED; }
#define NONE(member) .member = (__typeof__(((kvb_api*)0)->member))(void (*)(void))unsupported

static const kvb_api api = {.struct_size = sizeof(kvb_api),
                            .abi_version = KVB_ABI_VERSION + KV_DRAFT_SHIFT,
                            .name = "frozen",
                            .version = "0.1",
                            .instance_create = instance_create,
                            .instance_destroy = instance_destroy,
                            .device_count = device_count,
                            .device_info = device_info,
                            NONE(device_open),
                            NONE(device_close),
                            NONE(device_query),
                            NONE(device_variant),
                            NONE(weight_memory),
                            NONE(weight_create),
                            NONE(weight_destroy),
                            NONE(cache_memory),
                            NONE(cache_create),
                            NONE(cache_destroy),
                            NONE(cache_resize),
                            NONE(cache_copy_rows),
                            NONE(cache_poison_page),
                            NONE(cache_read_rows),
                            NONE(cache_write_rows),
                            NONE(program_check),
                            NONE(program_memory),
                            NONE(program_compile),
                            NONE(program_destroy),
                            NONE(queue_create),
                            NONE(queue_destroy),
                            NONE(queue_submit),
                            NONE(queue_wait),
                            NONE(extension)};

/* What its header said. */
__attribute__((visibility("default"))) extern const uint32_t kv_test_abi_version;
const uint32_t kv_test_abi_version = KVB_ABI_VERSION + KV_DRAFT_SHIFT;

__attribute__((visibility("default"))) const kvb_api* kv_backend_query_v0(const kvb_host* host, kv_error* error);
const kvb_api* kv_backend_query_v0(const kvb_host* host, kv_error* error) {
  (void)host, (void)error;
  return &api;
}
