// SPDX-License-Identifier: MIT
//
// The reference backend: plain scalar C++, double accumulation, one thread. It says what each op means (ops.cpp), how
// weights are read (dequantize.cpp) and what a cache stores (quantize.cpp), and is made to be copied. Here: its table.
#include "cache.h"
#include "device.h"
#include "program.h"
#include "queue.h"
#include "sdk/entry.h"
#include "weight.h"

namespace kvasir::ref {

namespace {

const void* extension(const char*) { return nullptr; }

constexpr kvb_api kApi = {
    .struct_size = sizeof(kvb_api),
    .abi_version = KVB_ABI_VERSION,
    .name = "ref",
    .version = "0.1.0",
    .instance_create = instance_create,
    .instance_destroy = instance_destroy,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .device_query = device_query,
    .device_variant = device_variant,
    .weight_memory = weight_memory,
    .weight_create = weight_create,
    .weight_destroy = weight_destroy,
    .cache_memory = cache_memory,
    .cache_create = cache_create,
    .cache_destroy = cache_destroy,
    .cache_resize = cache_resize,
    .cache_copy_rows = cache_copy_rows,
    .cache_poison_page = cache_poison_page,
    .cache_read_rows = cache_read_rows,
    .cache_write_rows = cache_write_rows,
    .cache_move_rows = cache_move_rows,
    .program_check = program_check,
    .program_memory = program_memory,
    .program_compile = program_compile,
    .program_destroy = program_destroy,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .queue_wait = queue_wait,
    .extension = extension,
};

}  // namespace

}  // namespace kvasir::ref

KVB_DEFINE_BACKEND(ref, kvasir::ref::kApi)
