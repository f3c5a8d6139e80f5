/* SPDX-License-Identifier: MIT
 *
 * backend.h: the ABI between the runtime and a backend plugin. Self-contained; C99 and C++.
 *
 * DRAFT. The major is 0 until three backends have used it: runtime and plugin must then agree on KVB_ABI_DRAFT exactly.
 * With version 1 both sides grow by appending only.
 *
 * What a plugin is: a shared library `libkvasir_backend_<name>.v0.so` with one exported symbol, kv_backend_query_v0,
 * that hands out a static table of functions. It never links the runtime, opens its driver lazily (a machine without
 * the driver still loads the plugin and is told "0 devices, because ..."), and is never unloaded.
 *
 * Objects and their order:
 *   instance   everything else hangs off it; no globals.  Destroyed last
 *   device     weights, caches, programs and queues live on one device
 *   weight     one tensor's bytes, given once; private layout
 *   cache      keys and values of all layers in pages; layout private, bookkeeping the runtime's
 *   program    ops compiled once; only a small step block changes between two submits
 *   queue      in-order execution, one host thread at a time
 *
 * Rules for every function
 *   - never abort, exit, throw, print, install signal handlers, or leave the caller's floating-point state changed
 *   - on failure: a status, a sentence in `error` (may be NULL), outputs untouched, objects as before; after
 *     KV_DEVICE_LOST only destroy and close calls follow
 *   - destroy and close calls accept NULL
 *   - instance and device calls are thread-safe; a queue and what it runs on (its cache) belong to one thread at a time
 *   - structs with struct_size: read min(struct_size, own size), the missing tail is 0; a non-zero tail beyond one's own
 *     size is KV_UNSUPPORTED. Arrays of structs are stepped by their stride
 *   - fields named reserved are 0; a non-zero one is KV_UNSUPPORTED
 */
#ifndef KVASIR_BACKEND_H
#define KVASIR_BACKEND_H

#include "kvasir/ops.h"
#include "kvasir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KVB_ABI_MAJOR 0 /* in the plugin's file name and in the entry symbol */
#define KVB_ABI_DRAFT 1 /* with major 0 both sides must carry the same revision */
#define KVB_ABI_VERSION ((uint32_t)KVB_ABI_MAJOR << 16 | KVB_ABI_DRAFT)

typedef struct kvb_instance kvb_instance;
typedef struct kvb_device kvb_device;
typedef struct kvb_weight kvb_weight;
typedef struct kvb_cache kvb_cache;
typedef struct kvb_program kvb_program;
typedef struct kvb_queue kvb_queue;

/* ---- host services ------------------------------------------------------------------------------------------------
 * What the runtime lends to a plugin; valid until instance_destroy. */
typedef struct kvb_host {
  uint32_t struct_size;
  uint32_t abi_version; /* KVB_ABI_VERSION of the runtime */
  kv_log_fn log;        /* may be NULL */
  void* log_user;
  kv_allocator allocator;          /* for large host blocks; always set */
  kv_parallel_for_fn parallel_for; /* the application's executor, or NULL: then the plugin may own threads */
  void* parallel_user;
} kvb_host;

/* ---- devices ------------------------------------------------------------------------------------------------------*/
enum {
  KVB_DEVICE_CPU = 1,
  KVB_DEVICE_GPU = 2,
  KVB_DEVICE_INTEGRATED_GPU = 3,
  KVB_DEVICE_SOFTWARE = 4,
  KVB_DEVICE_OTHER = 5
};

typedef struct kvb_device_info {
  uint32_t struct_size;
  uint32_t kind;         /* KVB_DEVICE_* */
  char name[128];        /* NUL-terminated UTF-8 */
  char driver[128];      /* driver or instruction set, with version */
  uint64_t memory_total; /* bytes; 0 = unknown */
  uint64_t memory_available;
} kvb_device_info;

typedef struct kvb_device_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* variant; /* forces a named variant, e.g. an instruction set ("scalar", "avx2", "avx512"); NULL = best */
} kvb_device_options;

/* Keys of device_query. Masks have bit KV_TYPE_* set for each type. Unknown key: KV_UNSUPPORTED. */
enum {
  KVB_QUERY_WEIGHT_TYPES = 1, /* mask: matrices a LINEAR takes as they are */
  KVB_QUERY_K_TYPES = 2,      /* mask: cache types for keys */
  KVB_QUERY_V_TYPES = 3,
  KVB_QUERY_PAGE_TOKENS = 4, /* preferred tokens per page */
  KVB_QUERY_PAGE_TOKENS_MIN = 5,
  KVB_QUERY_PAGE_TOKENS_MAX = 6,
  KVB_QUERY_BATCH_TOKENS = 7,    /* preferred upper bound of tokens per step */
  KVB_QUERY_DETERMINISTIC = 8,   /* 1: bits do not depend on batch, threads, pages (promise 3) */
  KVB_QUERY_HOST_MEMORY = 9,     /* 1: weights and caches live in host memory */
  KVB_QUERY_WEIGHT_IMPORT = 10,  /* 1: KVB_WEIGHT_IMPORT is honoured */
  KVB_QUERY_MEMORY_USED = 11,    /* bytes this device object holds now, for weights, caches, programs, queues */
  KVB_QUERY_DEFAULT_THREADS = 12 /* threads a queue uses when asked for 0; 0 = not a notion of this device */
};

/* ---- weights ------------------------------------------------------------------------------------------------------*/
enum { KVB_WEIGHT_IMPORT = 1 }; /* `data` stays valid until `release` is called; the backend may keep using it */

typedef struct kvb_weight_desc {
  uint32_t struct_size;
  uint32_t type;               /* KV_TYPE_* */
  uint32_t depth, rows, width; /* [depth][rows][width]; vectors are rows = 1 */
  uint32_t flags;              /* KVB_WEIGHT_* */
  const void* data;            /* in the layout of types.h; valid during the call only, unless imported */
  uint64_t bytes;              /* exactly depth * rows * bytes of a row */
  void (*release)(void* user); /* import only: called once when the weight no longer reads `data`; also on failure */
  void* release_user;
} kvb_weight_desc;

/* ---- cache --------------------------------------------------------------------------------------------------------
 * Layers with the same geometry form a group; each group has its own pages and, in a step, its own page tables. A page
 * holds page_tokens consecutive positions of one sequence for every layer of its group: position p is row
 * p % page_tokens of page table[p / page_tokens]. */
typedef struct kvb_cache_group {
  uint32_t k_type, v_type; /* KV_TYPE_* */
  uint32_t kv_heads;
  uint32_t k_dim, v_dim; /* elements per head; latent cache: KVB_CACHE_LATENT and v_dim <= k_dim */
  uint32_t window;       /* 0 = full attention */
  uint32_t page_tokens;
  uint32_t flags; /* KVB_CACHE_LATENT */
} kvb_cache_group;

enum { KVB_CACHE_LATENT = 1 }; /* V is the first v_dim elements of each K row; no V rows are stored */

typedef struct kvb_cache_desc {
  uint32_t struct_size;
  uint32_t layers; /* cache layers, the p0 of KV_STORE and ATTENTION */
  uint32_t group_count;
  uint32_t group_stride; /* bytes from one kvb_cache_group to the next */
  const kvb_cache_group* groups;
  const uint32_t* layer_group; /* [layers] group of each layer */
} kvb_cache_desc;

enum { KVB_ROWS_K = 1, KVB_ROWS_V = 2 };
enum { KVB_FORMAT_STORED = 1, KVB_FORMAT_F32 = 2 };

/* `count` consecutive rows of one page and layer. A row is all kv heads: kv_heads * k_dim (v_dim) elements. STORED is
 * head after head, each head's elements in the stored type's blocks, padded to whole blocks per head; F32 is the
 * dequantised elements. */
typedef struct kvb_cache_rows {
  uint32_t struct_size;
  uint32_t layer;
  uint32_t what;   /* KVB_ROWS_* */
  uint32_t format; /* KVB_FORMAT_*; writes take STORED only */
  uint32_t page;
  uint32_t first; /* row in the page */
  uint32_t count;
  uint32_t reserved;
} kvb_cache_rows;

/* One run of rows that changes place, for cache_move_rows. */
typedef struct kvb_cache_move {
  uint32_t from_page, from_row;
  uint32_t to_page, to_row;
  uint32_t count;
  int32_t delta; /* new position - old position: keys are rotated by it, values copied */
} kvb_cache_move;

/* ---- programs -----------------------------------------------------------------------------------------------------*/
enum { KVB_PROGRAM_TRACE = 1 }; /* claims no groups, calls step.trace after each op; same bits as untraced */

typedef struct kvb_program_desc {
  uint32_t struct_size;
  uint32_t flags;         /* KVB_PROGRAM_* */
  uint32_t max_tokens;    /* largest T */
  uint32_t max_outputs;   /* largest O */
  uint32_t max_sequences; /* most sequences in a step */
  uint32_t max_length;    /* longest sequence a step will see, its own tokens included */
  uint32_t value_count, value_stride;
  uint32_t op_count, op_stride;
  const kvb_value* values;
  const kvb_op* ops;
  const void* blob; /* parameters that do not fit an op; 8-byte aligned */
  uint64_t blob_bytes;
  uint64_t scratch_bytes; /* end of the last scratch value */
  uint32_t compute_mode;  /* KV_COMPUTE_EXACT or KV_COMPUTE_FAST */
  uint32_t reserved;
} kvb_program_desc;

/* Bytes a create call would take, exact for what the backend itself requests. */
typedef struct kvb_memory {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t device_bytes; /* on a device with host memory: from the host allocator */
  uint64_t host_bytes;   /* staging and bookkeeping beyond a few kilobytes */
} kvb_memory;

/* ---- steps --------------------------------------------------------------------------------------------------------*/
typedef struct kvb_page_table { /* frozen: one per cache group */
  const uint32_t* pages;        /* [sequence_count][pages_per_sequence]; KVB_NONE = no query can reach it */
  uint32_t pages_per_sequence;
  uint32_t reserved;
} kvb_page_table;

enum { KVB_TRACE_VALUE = 1, KVB_TRACE_SCORES = 2, KVB_TRACE_WEIGHTS = 3 };

/* Handed to step.trace on the thread inside queue_submit or queue_wait. VALUE: out[0] of an op, all rows. SCORES and
 * WEIGHTS: one row per (token, head) of an ATTENTION: what enters and what leaves the softmax; column j is position
 * first_position + j. */
typedef struct kvb_trace_record {
  uint32_t struct_size;
  uint32_t what;        /* KVB_TRACE_* */
  uint32_t op;          /* index in the program */
  uint32_t token, head; /* SCORES, WEIGHTS: which row; else 0 */
  uint32_t rows, width; /* shape of data, row-major */
  uint32_t first_position;
  const float* data; /* valid during the call */
} kvb_trace_record;
typedef void (*kvb_trace_fn)(void* user, const kvb_trace_record* record);

/* The only thing that changes between two submits. Copied before queue_submit returns, unless said otherwise. Tokens of
 * one sequence are adjacent and have consecutive rising positions; sequence s covers positions up to lengths[s] - 1. */
typedef struct kvb_step {
  uint32_t struct_size;
  uint32_t token_count; /* T >= 1 */
  uint32_t sequence_count;
  uint32_t output_count;        /* O; may be 0: then nothing is written to out */
  const int32_t* tokens;        /* [T] id >= 0, or ~r for row r of embeddings */
  const float* embeddings;      /* [rows][dim], may be NULL when no token refers to it */
  const uint32_t* positions;    /* [T] */
  const uint32_t* sequence_of;  /* [T] index < sequence_count */
  const uint32_t* lengths;      /* [sequence_count] tokens held after this step */
  const kvb_page_table* tables; /* [group_count] */
  const uint32_t* output_rows;  /* [O] rising token indices */
  const uint32_t* stop;         /* NULL, or a word read atomically while the step runs: non-zero asks it to end early
                                      with KV_CANCELLED, within one stage. Stays valid until the ticket is finished */
  kvb_trace_fn trace;           /* traced programs; NULL = do not report */
  void* trace_user;
  uint32_t embedding_count; /* rows in embeddings */
  uint32_t group_count;
  const void* reserved_components; /* further position components per token; NULL */
  const void* reserved_parents;    /* tree parents for speculative branches; NULL */
  const void* reserved_hidden;     /* device-resident hidden rows from another stage; NULL */
} kvb_step;

typedef struct kvb_queue_options {
  uint32_t struct_size;
  uint32_t
      threads; /* CPU: 0 = as many as the process may use (affinity and container limits); else at most this many */
} kvb_queue_options;

#define KVB_WAIT_FOREVER UINT64_MAX

/* ---- the table ----------------------------------------------------------------------------------------------------
 * Filled statically by the backend. Every pointer is set unless it says "optional". */
typedef struct kvb_api {
  uint32_t struct_size;
  uint32_t abi_version; /* KVB_ABI_VERSION the plugin was built with */
  const char* name;     /* "cpu": equal to the name in the file name; at most 32 bytes */
  const char* version;  /* of the plugin, "0.1.0"; at most 63 bytes */

  /* Instance. Cheap: opens no device. `host` is copied. */
  kv_status (*instance_create)(const kvb_host* host, kvb_instance** out, kv_error* error);
  void (*instance_destroy)(kvb_instance* instance);

  /* Devices. The count may be 0; then `reason` (capacity bytes, may be NULL) gets one sentence that says why. A device
   * whose info fails is listed with that reason; the others stay usable. An unknown variant is KV_UNSUPPORTED. */
  kv_status (*device_count)(kvb_instance* instance, uint32_t* out, char* reason, size_t capacity, kv_error* error);
  kv_status (*device_info)(kvb_instance* instance, uint32_t index, kvb_device_info* out, kv_error* error);
  kv_status (*device_open)(kvb_instance* instance, uint32_t index, const kvb_device_options* options, kvb_device** out,
                           kv_error* error);
  void (*device_close)(kvb_device* device);
  kv_status (*device_query)(kvb_device* device, uint32_t key, uint64_t* out, kv_error* error);
  /* Name of the variant in use ("avx2"), static storage. */
  const char* (*device_variant)(kvb_device* device);

  /* Weights. */
  kv_status (*weight_memory)(kvb_device* device, const kvb_weight_desc* desc, kvb_memory* out, kv_error* error);
  kv_status (*weight_create)(kvb_device* device, const kvb_weight_desc* desc, kvb_weight** out, kv_error* error);
  void (*weight_destroy)(kvb_weight* weight);

  /* Caches start with 0 pages in every group. Resize keeps the content of pages below the new count; all groups or
   * none. Rows are valid once the ticket that wrote them is finished; the calls below run after everything submitted
   * on `queue` and are finished when they return. */
  kv_status (*cache_memory)(kvb_device* device, const kvb_cache_desc* desc, const uint32_t* page_counts,
                            kvb_memory* out, kv_error* error);
  kv_status (*cache_create)(kvb_device* device, const kvb_cache_desc* desc, kvb_cache** out, kv_error* error);
  void (*cache_destroy)(kvb_cache* cache);
  kv_status (*cache_resize)(kvb_queue* queue, kvb_cache* cache, const uint32_t* page_counts, kv_error* error);
  /* Rows [first, first + count) of page `from` to the same rows of page `to`, in all layers of the group. */
  kv_status (*cache_copy_rows)(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t from, uint32_t to,
                               uint32_t first, uint32_t count, kv_error* error);
  /* Fills a whole page with bytes that read as NaN (quantised types: NaN scales). Tests use it on unowned pages. */
  kv_status (*cache_poison_page)(kvb_queue* queue, kvb_cache* cache, uint32_t group, uint32_t page, kv_error* error);
  /* bytes: exactly what the rows need, see cache_row_bytes. */
  kv_status (*cache_read_rows)(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, void* data,
                               uint64_t bytes, kv_error* error);
  kv_status (*cache_write_rows)(kvb_queue* queue, kvb_cache* cache, const kvb_cache_rows* rows, const void* data,
                                uint64_t bytes, kv_error* error);
  /* Optional: NULL = rows cannot be moved. As if all rows were read before the first is written. `rope` [layers of the
   * group] gives each layer's rotary parameters (it or its elements may be NULL: not rotated), in the order of layer
   * numbers. Only angles matter: the magnitude is in the stored keys already. Targets must not overlap. */
  kv_status (*cache_move_rows)(kvb_queue* queue, kvb_cache* cache, uint32_t group, const kvb_cache_move* moves,
                               uint32_t count, const kvb_rope* const* rope, kv_error* error);

  /* Programs. check: first_unsupported gets the index of the first op the backend cannot run (then KV_UNSUPPORTED and a
   * sentence), or KVB_NONE. The cache description stands for every cache the program will run on. */
  kv_status (*program_check)(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                             uint32_t* first_unsupported, kv_error* error);
  kv_status (*program_memory)(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                              kvb_memory* out, kv_error* error);
  /* Weights must outlive the program. Scratch belongs to the program: one queue runs it at a time. */
  kv_status (*program_compile)(kvb_device* device, const kvb_program_desc* desc, const kvb_cache_desc* cache,
                               kvb_weight* const* weights, uint32_t weight_count, kvb_program** out, kv_error* error);
  void (*program_destroy)(kvb_program* program);

  /* Queues. submit may run the step before it returns. `out` [O][width] f32 is written when the ticket is finished, and
   * untouched when the step fails. wait returns the step's own status once (KV_TIMEOUT while it is running; a ticket that
   * was waited for is KV_INVALID_ARGUMENT). A refused step gets no ticket, a stopped one does. A failed
   * step may have written cache rows at the positions it was given, nothing else. */
  kv_status (*queue_create)(kvb_device* device, const kvb_queue_options* options, kvb_queue** out, kv_error* error);
  void (*queue_destroy)(kvb_queue* queue); /* waits for submitted work */
  kv_status (*queue_submit)(kvb_queue* queue, kvb_program* program, kvb_cache* cache, const kvb_step* step, float* out,
                            uint64_t out_floats, uint64_t* out_ticket, kv_error* error);
  kv_status (*queue_wait)(kvb_queue* queue, uint64_t ticket, uint64_t timeout_ns, kv_error* error);

  /* Named tables of further functions, e.g. "kvasir.counters/1"; NULL = absent. Each starts with struct_size. */
  const void* (*extension)(const char* name);
} kvb_api;

/* The one exported symbol. May be called more than once; touches no device, starts no thread, reads no file. NULL (with
 * `error` filled) = this plugin cannot serve this host. */
typedef const kvb_api* (*kvb_query_fn)(const kvb_host* host, kv_error* error);
#define KVB_ENTRY_SYMBOL "kv_backend_query_v0"

#ifdef __cplusplus
}
#endif

#endif /* KVASIR_BACKEND_H */
