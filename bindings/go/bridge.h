/* SPDX-License-Identifier: MIT
 *
 * The C side of the Go package: options are built here, on the C stack, from flat arguments, so that Go hands over no
 * struct with pointers in it; callbacks get the integer of a cgo.Handle.
 */
#ifndef KVASIR_GO_BRIDGE_H
#define KVASIR_GO_BRIDGE_H

#include "kvasir/kvasir.h"

kv_status kvgo_runtime_create(uint32_t flags, const char* path, uintptr_t log, kv_runtime** out, kv_error* error);
kv_status kvgo_load_file(kv_runtime* runtime, const char* path, kv_cancel* cancel, uintptr_t progress, kv_model** out,
                         kv_error* error);

/* What a step takes besides its tokens. Flat; copied. */
typedef struct kvgo_step {
  uintptr_t progress, row; /* handles; 0 = none */
  uint32_t outputs, keep_chunks;
} kvgo_step;
kv_status kvgo_prefill(kv_context* context, kv_sequence sequence, const int32_t* tokens, size_t count, kvgo_step step,
                       kv_cancel* cancel, float* into, uint64_t floats, kv_step_result* result, kv_error* error);
kv_status kvgo_decode(kv_context* context, const kv_decode_input* inputs, size_t count, kvgo_step step,
                      kv_cancel* cancel, float* into, uint64_t floats, kv_step_result* results, kv_error* error);

kv_status kvgo_sampler_create(float temperature, uint32_t top_k, int32_t use_top_p, float top_p, float min_p,
                              uint64_t seed, const kv_logit_bias* bias, size_t bias_count, kv_sampler** out,
                              kv_error* error);

#endif /* KVASIR_GO_BRIDGE_H */
