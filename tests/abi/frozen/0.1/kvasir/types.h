/* SPDX-License-Identifier: MIT
 *
 * types.h: what both interfaces share: status codes, the error record, the log and memory callbacks, and the element
 * types with their byte layouts. Self-contained; C99 and C++. Included by kvasir.h (for applications) and by backend.h
 * (for plugins). Everything here is frozen or append-only.
 */
#ifndef KVASIR_TYPES_H
#define KVASIR_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status -------------------------------------------------------------------------------------------------------
 * Every fallible call returns one. Treat an unknown non-zero value as KV_INTERNAL. */
typedef int32_t kv_status;
enum {
  KV_OK = 0,
  KV_INVALID_ARGUMENT = 1,  /* a value the call cannot accept: NULL, out of range, unknown id, malformed struct */
  KV_NOT_FOUND = 2,         /* no such file, device, backend, key or tensor */
  KV_UNSUPPORTED = 3,       /* well-formed, but this build, model or device cannot do it */
  KV_OUT_OF_MEMORY = 4,     /* host or device memory, or a byte budget set by the application */
  KV_CONTEXT_FULL = 5,      /* more tokens than the context or its budget can hold; the message has both numbers */
  KV_CANCELLED = 6,         /* a kv_cancel was set; state as before the call */
  KV_DEVICE_LOST = 7,       /* the device is gone; only release calls are allowed on what lives there */
  KV_INCOMPATIBLE = 8,      /* a plugin of another ABI, a file of another format version */
  KV_DENIED = 9,            /* a path the loader does not trust */
  KV_INTERNAL = 10,         /* a bug in Kvasir or in a plugin */
  KV_CORRUPT = 11,          /* a file or buffer whose content contradicts itself or ends early */
  KV_BUFFER_TOO_SMALL = 12, /* the caller's buffer; the needed size is in the out parameter */
  KV_BUSY = 13,             /* an object that one thread at a time may use is in use by another thread */
  KV_BAD_LOGITS = 14,       /* NaN or infinity where a distribution is needed, or every token excluded */
  KV_IO = 15,               /* the operating system refused to read or write; the message has its reason */
  KV_TIMEOUT = 16           /* (backends) the ticket is not finished yet */
};

/* Filled by a failing call; the caller owns it (usually on its stack) and may pass NULL instead. Never written on
 * success. Set struct_size to sizeof(kv_error) before use; 0 is read as that too. Frozen at 512 bytes. */
typedef struct kv_error {
  uint32_t struct_size;
  kv_status code;
  char message[504]; /* one sentence, NUL-terminated UTF-8, cut if longer */
} kv_error;

/* ---- callbacks ----------------------------------------------------------------------------------------------------*/

enum { KV_LOG_DEBUG = 1, KV_LOG_INFO = 2, KV_LOG_WARNING = 3, KV_LOG_ERROR = 4 };

/* One line of log without a line end or NUL. May arrive on any thread. Must not call back into Kvasir. */
typedef void (*kv_log_fn)(void* user, int32_t level, const char* text, size_t length);

/* Host memory for large blocks (weights, caches, scratch). `align` is a power of two. `alloc` returns NULL when there
 * is none. Both may be called from any thread. Frozen: embedded by value in other structs. */
typedef struct kv_allocator {
  void* user;
  void* (*alloc)(void* user, size_t size, size_t align);
  void (*release)(void* user, void* memory, size_t size, size_t align);
} kv_allocator;

/* Runs body(arg, i) once for every i in [0, count), on any threads, and returns when all have returned. Bodies are
 * correct even when they run one after another on the calling thread. They use up to 70 KB of stack. */
typedef void (*kv_parallel_body_fn)(void* arg, uint32_t index);
typedef void (*kv_parallel_for_fn)(void* user, uint32_t count, kv_parallel_body_fn body, void* arg);

/* ---- element types ------------------------------------------------------------------------------------------------
 * Matrices are [out, in], row-major; a row is a whole number of blocks along `in`. Multi-byte fields are little-endian.
 * Layouts are those of GGUF files and are frozen. `f16` is IEEE binary16, `bf16` the upper half of a binary32.
 * In the formulas q is a code, d and m are scales, x the value; bit fields count from the least significant bit.
 *
 *   type    block bytes  layout and meaning
 *   F32         1     4  x
 *   F16         1     2  x
 *   BF16        1     2  x
 *   Q8_0       32    34  f16 d; i8 q[32]                          x = d q
 *   Q4_0       32    18  f16 d; u8 q[16]                          x = d (q - 8); low nibbles 0..15, high 16..31
 *   Q4_1       32    20  f16 d, m; u8 q[16]                       x = d q + m; nibbles as Q4_0
 *   Q5_0       32    22  f16 d; u8 h[4], q[16]                    x = d (q - 16); bit 4 of value i is bit i of h
 *   Q5_1       32    24  f16 d, m; u8 h[4], q[16]                 x = d q + m; bits as Q5_0
 *   Q2_K      256    84  u8 s[16], q[64]; f16 d, m                x = d (s & 15) q - m (s >> 4), 16 values per s
 *   Q3_K      256   110  u8 h[32], q[64], s[12]; f16 d            x = d (s - 32) (q - 4), 16 values per 6-bit s
 *   Q4_K      256   144  f16 d, m; u8 s[12], q[128]               x = d s q - m t, 32 values per pair (s, t) of 6 bits
 *   Q5_K      256   176  f16 d, m; u8 s[12], h[32], q[128]        as Q4_K with a fifth bit in h
 *   Q6_K      256   210  u8 l[128], h[64]; i8 s[16]; f16 d        x = d s (q - 32), 16 values per s
 *   IQ4_NL     32    18  f16 d; u8 q[16]                          x = d table[q]; nibbles as Q4_0
 *   IQ4_XS    256   136  f16 d; u16 h; u8 l[4], q[128]            x = d (s - 32) table[q], 32 values per 6-bit s
 *
 * The bit positions inside the K blocks are written out in backends/ref/dequantize.cpp, the normative code. */
enum {
  KV_TYPE_DEFAULT = 0,
  KV_TYPE_F32 = 1,
  KV_TYPE_F16 = 2,
  KV_TYPE_BF16 = 3,
  KV_TYPE_Q8_0 = 4,
  KV_TYPE_Q4_0 = 5,
  KV_TYPE_Q4_1 = 6,
  KV_TYPE_Q5_0 = 7,
  KV_TYPE_Q5_1 = 8,
  KV_TYPE_Q2_K = 9,
  KV_TYPE_Q3_K = 10,
  KV_TYPE_Q4_K = 11,
  KV_TYPE_Q5_K = 12,
  KV_TYPE_Q6_K = 13,
  KV_TYPE_IQ4_NL = 14,
  KV_TYPE_IQ4_XS = 15
};

/* How activations are multiplied. EXACT never rounds an activation: weights and cached rows are widened to f32. FAST
 * may round the activation to the partner's precision (int8 per block of 32 for block-quantised weights, bf16 for bf16
 * weights and caches). DEFAULT is FAST for models with block-quantised weights and EXACT otherwise. */
enum { KV_COMPUTE_DEFAULT = 0, KV_COMPUTE_EXACT = 1, KV_COMPUTE_FAST = 2 };

#ifdef __cplusplus
}
#endif

#endif /* KVASIR_TYPES_H */
