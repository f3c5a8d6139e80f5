/* SPDX-License-Identifier: MIT
 *
 * kvasir.h: the public C API of Kvasir, a transformer-decoding runtime that lives inside your process.
 * Self-contained; C99 and C++. This file is the manual: it is enough to use the library without other documents.
 *
 * Over the size limit because it is the manual: contents below.
 *
 * CONTENTS   1 purpose   2 example   3 objects and threads   4 errors and structs
 *            5 version   6 runtime and backends   7 control: cancel, progress   8 models   9 tokenizer
 *           10 context  11 sequences  12 running     13 looking inside          14 sampler
 *
 * ---- 1. PURPOSE --------------------------------------------------------------------------------------------------
 * Kvasir turns tokens into next-token scores (logits) with a decoder-only transformer, keeps the keys and values of
 * past tokens in a cache on the device that computes (the KV cache), and never harms its host: whatever the input, file,
 * device or allocation failure, you get a status and a sentence, and the state is as before the call.
 *
 *   prefill   runs many tokens of one sequence at once and fills the cache
 *   decode    appends one token to each of some sequences
 *   logits    one float per vocabulary entry, the scores of the token that follows
 *
 * On the backends `ref` and `cpu` logits are bit-identical however the tokens got into the cache: one prefill, any
 * chunking, single steps, alone or beside other sequences, any number of threads, any page size, after fork and
 * truncate. It holds within one compute mode, cache type and instruction set.
 *
 * ---- 2. EXAMPLE --------------------------------------------------------------------------------------------------
 *   kv_error e = {.struct_size = sizeof e};
 *   kv_runtime* runtime; kv_model* model; kv_context* context;
 *   if (kv_runtime_create(NULL, &runtime, &e) || kv_model_load_file(runtime, "model.gguf", NULL, &model, &e) ||
 *       kv_context_create(model, NULL, &context, &e)) { puts(e.message); exit(1); }
 *   const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
 *   int32_t tokens[256]; size_t count;
 *   kv_step_result r = {.struct_size = sizeof r};
 *   kv_tokenize(tokenizer, "Once upon a time", 16, KV_TOKENIZE_ADD_SPECIAL, tokens, 256, &count, &e);
 *   if (kv_prefill(context, KV_DEFAULT_SEQUENCE, tokens, count, NULL, &r, &e)) { puts(e.message); exit(1); }
 *   for (int i = 0; i < 100; i++) {
 *     int32_t best = 0;
 *     for (uint32_t v = 1; v < r.width; v++) if (r.rows[v] > r.rows[best]) best = (int32_t)v;
 *     if (kv_token_ends_generation(tokenizer, best)) break;
 *     char text[64]; size_t length;
 *     if (!kv_token_text(tokenizer, best, 0, text, sizeof text, &length, &e)) fwrite(text, 1, length, stdout);
 *     kv_decode_input in = {KV_DEFAULT_SEQUENCE, best, 0};
 *     if (kv_decode_step(context, &in, 1, NULL, &r, &e)) { puts(e.message); break; }
 *   }
 *   kv_context_release(context); kv_model_release(model); kv_runtime_release(runtime);
 *
 * ---- 3. OBJECTS AND THREADS --------------------------------------------------------------------------------------
 *   kv_runtime    plugins, devices, log, allocator, executor.          any thread
 *   kv_model      immutable configuration, tokenizer, weights.         any thread
 *   kv_context    one device's KV cache and the sequences in it.       one thread at a time; contexts run in parallel;
 *                                                                      a second thread gets KV_BUSY
 *   kv_sequence   a number: an ordered list of tokens in a context.    as its context
 *   kv_tokenizer  text to tokens and back.                             any thread
 *   kv_backend_report  immutable.                                      any thread
 *   kv_text_stream, kv_sampler, kv_model_builder                       one thread at a time; this is not checked
 *   kv_cancel     a flag that stops long calls.                        any thread, any time
 * "One thread at a time" is about calls: an object may move between threads. A call through a const pointer changes
 * nothing and leaves borrowed memory valid; on a context it is a call all the same. Children keep their parents alive:
 * release in any order, once. Releasing NULL does nothing. There is no global state.
 * Callbacks run on the thread that made the call unless they say otherwise, must return (no exception, panic or longjmp
 * through Kvasir), and must not call back into the object that is calling them. Memory they are given is valid until they
 * return. A callback stops the call it runs in by setting the call's kv_cancel. It sees the floating-point state of its
 * thread's owner (an allocator does not); every call leaves that state as found. A context that is released while it is
 * in use is freed when that use ends. After fork() the child's contexts of before answer KV_DEVICE_LOST; new ones work.
 *
 * ---- 4. ERRORS AND STRUCTS ---------------------------------------------------------------------------------------
 * Fallible calls return a kv_status and take a kv_error* last (may be NULL). On failure out parameters are untouched
 * unless said otherwise, and objects are as before. Structs start with struct_size: set it to sizeof the struct and the
 * rest to zero (`kv_context_options o = {.struct_size = sizeof o};`); zero means default. Structs only ever grow at the
 * end: a library older than your header refuses a non-zero field it does not know (KV_UNSUPPORTED). Options may be NULL:
 * all defaults. Pointers inside options are read during the call only, unless said otherwise.
 * Strings are UTF-8 and end in NUL unless a length stands beside them; strings handed out are never NULL unless said
 * otherwise. Paths are the system's bytes. What comes from a file or a plugin (names, metadata, text of tokens, and
 * sentences that quote them) is handed on as it is and may not be UTF-8. A pointer may be NULL where its count is 0.
 * `size_t* length` out parameters of buffers hold the full length even when the buffer is too small
 * (KV_BUFFER_TOO_SMALL; nothing is written to it), so pass capacity 0 to ask. No NUL is appended.
 */
#ifndef KVASIR_KVASIR_H
#define KVASIR_KVASIR_H

#include "kvasir/types.h"

/* ---- 5. VERSION ---------------------------------------------------------------------------------------------------*/
#define KV_VERSION_MAJOR 0 /* SONAME. From 1 on: same major = same ABI */
#define KV_VERSION_MINOR 1
#define KV_VERSION_PATCH 0

#if defined(KVASIR_STATIC)
#define KV_API
#elif defined(_WIN32)
#if defined(KVASIR_BUILDING)
#define KV_API __declspec(dllexport)
#else
#define KV_API __declspec(dllimport)
#endif
#else
#define KV_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the loaded library: major << 16 | minor << 8 | patch. */
KV_API uint32_t kv_version(void);
/* "KV_CONTEXT_FULL" for 5 and so on; "KV_UNKNOWN" otherwise. Static storage. */
KV_API const char* kv_status_name(kv_status status);
/* "Q4_K" for KV_TYPE_Q4_K and so on; "?" otherwise. Static storage. */
KV_API const char* kv_type_name(uint32_t type);

/* ---- 6. RUNTIME AND BACKENDS --------------------------------------------------------------------------------------*/
typedef struct kv_runtime kv_runtime;
typedef struct kv_model kv_model;
typedef struct kv_model_builder kv_model_builder;
typedef struct kv_context kv_context;
typedef struct kv_tokenizer kv_tokenizer;
typedef struct kv_text_stream kv_text_stream;
typedef struct kv_sampler kv_sampler;
typedef struct kv_cancel kv_cancel;
typedef struct kv_backend_report kv_backend_report;
typedef uint64_t kv_sequence;

enum {
  KV_RUNTIME_IGNORE_ENVIRONMENT = 1, /* KVASIR_BACKEND_PATH is not read */
  KV_RUNTIME_NO_SEARCH = 2,          /* only plugins given by kv_runtime_load_backend or in backend_path, and built-in
                                        ones */
  KV_RUNTIME_ALLOW_UNTRUSTED = 4     /* also load plugins from world-writable or foreign-owned places; logged */
};

typedef struct kv_runtime_options {
  uint32_t struct_size;
  uint32_t flags; /* KV_RUNTIME_* */
  kv_log_fn log;  /* NULL = silent. Any thread, as long as anything of the runtime lives */
  void* log_user;
  const kv_allocator* allocator;   /* large host blocks; copied; NULL = the C library */
  kv_parallel_for_fn parallel_for; /* lent executor: then Kvasir starts no threads. NULL = backends own theirs */
  void* parallel_user;
  void (*destroyed)(void* user); /* called once, on any thread, when no callback of this runtime will be called again;
                                    not after a failed kv_runtime_create; may be NULL */
  void* destroyed_user;
  const char* backend_path; /* absolute directories, ':' between them, searched for plugins first; may be NULL */
} kv_runtime_options;

/* Creates a runtime. Opens no plugin and no device yet. */
KV_API kv_status kv_runtime_create(const kv_runtime_options* options, kv_runtime** out, kv_error* error);
KV_API void kv_runtime_release(kv_runtime* runtime);

/* Loads a plugin from an absolute path; it wins over one of the same name found by search. KV_DENIED: the path could be
 * changed by others. KV_INCOMPATIBLE: another ABI. */
KV_API kv_status kv_runtime_load_backend(kv_runtime* runtime, const char* path, kv_error* error);

/* Backends are named "cpu", "ref", "vulkan", "cuda". A device is named "cpu" (the first), "vulkan:1", or "auto": the
 * best of cuda, vulkan, cpu. A named device that cannot be had is an error with the reason, never another device. */

/* What was looked at, as data. Opens every plugin that can be found. */
KV_API kv_status kv_backend_report_create(kv_runtime* runtime, kv_backend_report** out, kv_error* error);
KV_API void kv_backend_report_release(kv_backend_report* report);

enum { KV_ENTRY_PLUGIN = 1, KV_ENTRY_BUILT_IN = 2, KV_ENTRY_DIRECTORY = 3 };

typedef struct kv_backend_entry { /* strings live as long as the report */
  uint32_t struct_size;
  kv_status status;    /* KV_OK: usable as a plugin (it may still have 0 devices); a directory: it was read */
  const char* name;    /* "cpu"; "" when the file name does not say */
  const char* path;    /* "" = built in */
  const char* version; /* "" when refused */
  const char* reason;  /* why refused, or why it has no devices; "" when fine */
  uint32_t device_count;
  uint32_t kind;      /* KV_ENTRY_*: directories that were searched are listed too */
  const char* origin; /* why this place was looked at: "KVASIR_BACKEND_PATH", "beside the library", ... */
} kv_backend_entry;

enum {
  KV_DEVICE_CPU = 1,
  KV_DEVICE_GPU = 2,
  KV_DEVICE_INTEGRATED_GPU = 3,
  KV_DEVICE_SOFTWARE = 4,
  KV_DEVICE_OTHER = 5
};

typedef struct kv_device_info { /* strings live as long as the report */
  uint32_t struct_size;
  uint32_t kind; /* KV_DEVICE_* */
  const char* name;
  const char* driver;
  uint64_t memory_total; /* bytes, 0 = unknown */
  uint64_t memory_available;
} kv_device_info;

KV_API size_t kv_backend_report_count(const kv_backend_report* report);
KV_API kv_status kv_backend_report_entry(const kv_backend_report* report, size_t index, kv_backend_entry* out,
                                         kv_error* error);
KV_API kv_status kv_backend_report_device(const kv_backend_report* report, size_t index, uint32_t device,
                                          kv_device_info* out, kv_error* error);

/* ---- 7. CONTROL ---------------------------------------------------------------------------------------------------
 * A sticky flag. Hand it to long calls; set it from any thread (it is safe in a signal handler). A press between two calls
 * stops the next one; reset it when it has been served. Keep it alive while a call uses it. */
KV_API kv_status kv_cancel_create(kv_cancel** out, kv_error* error);
KV_API void kv_cancel_set(kv_cancel* cancel);
KV_API void kv_cancel_reset(kv_cancel* cancel);
KV_API int32_t kv_cancel_is_set(const kv_cancel* cancel);
KV_API void kv_cancel_release(kv_cancel* cancel);

/* done of total, in bytes (loading) or tokens (prefill); done never falls, and ends at total on success. */
typedef void (*kv_progress_fn)(void* user, uint64_t done, uint64_t total);

/* ---- 8. MODELS ----------------------------------------------------------------------------------------------------*/
enum {
  KV_MODEL_MAP_FILE = 1,     /* map the file instead of reading it. Then a file that is cut while in use kills the
                                process: only for files nobody writes to */
  KV_MODEL_BORROW_MEMORY = 2 /* kv_model_load_memory: use the buffer in place; it must outlive the model */
};

typedef struct kv_model_options {
  uint32_t struct_size;
  uint32_t flags;          /* KV_MODEL_* */
  kv_progress_fn progress; /* may be NULL */
  void* progress_user;
  const kv_cancel* cancel; /* may be NULL */
} kv_model_options;

/* Opens a GGUF file (version 2 or 3; for a split model the first piece). The header is checked completely; tensor data
 * is read when a device first needs it. */
KV_API kv_status kv_model_load_file(kv_runtime* runtime, const char* path, const kv_model_options* options,
                                    kv_model** out, kv_error* error);
/* The same from memory; the buffer is copied unless KV_MODEL_BORROW_MEMORY is set. */
KV_API kv_status kv_model_load_memory(kv_runtime* runtime, const void* data, size_t size,
                                      const kv_model_options* options, kv_model** out, kv_error* error);
KV_API void kv_model_release(kv_model* model);

/* Reads and repacks the weights for a device ahead of the first context there; keeps them until the model is released.
 * device: see section 6; NULL = "auto". */
KV_API kv_status kv_model_prepare(kv_model* model, const char* device, const kv_model_options* options,
                                  kv_error* error);

typedef struct kv_model_info { /* strings live as long as the model */
  uint32_t struct_size;
  uint32_t layers;
  const char* architecture; /* "llama" */
  const char* name;         /* may be "" */
  uint32_t dim;             /* width of the hidden rows */
  uint32_t heads, kv_heads;
  uint32_t head_dim; /* of queries and keys */
  uint32_t v_head_dim;
  uint32_t ffn_dim;
  uint32_t vocab;          /* 0: no output head; results are hidden rows of `dim` */
  uint32_t context_length; /* tokens the model was trained for; 0 = unknown */
  uint64_t parameters;
  uint64_t tensor_bytes; /* in the file's types */
  uint32_t tensors;
  uint32_t metadata; /* number of key-value pairs */
} kv_model_info;
KV_API kv_status kv_model_get_info(const kv_model* model, kv_model_info* out, kv_error* error);

enum {                          /* kinds of metadata values */
       KV_METADATA_INTEGER = 1, /* integer; is_unsigned = 1: the bits of a uint64_t */
       KV_METADATA_FLOAT = 2,
       KV_METADATA_BOOL = 3,   /* integer 0 or 1 */
       KV_METADATA_STRING = 4, /* text, length */
       KV_METADATA_ARRAY = 5   /* count, element_kind */
};
typedef struct kv_metadata { /* pointers live as long as the model; neither string is NUL-terminated */
  uint32_t struct_size;
  uint32_t kind;
  const char* key;
  uint64_t key_length;
  int64_t integer;
  double real;
  const char* text; /* NULL unless a string */
  uint64_t length;
  uint64_t count;
  uint32_t element_kind;
  uint32_t is_unsigned;
} kv_metadata;
/* Pair `index` < kv_model_info.metadata, in file order. */
KV_API kv_status kv_model_metadata_at(const kv_model* model, size_t index, kv_metadata* out, kv_error* error);
KV_API kv_status kv_model_metadata_find(const kv_model* model, const char* key, kv_metadata* out, kv_error* error);
/* Element `index` of an array value; finding a string takes time in proportion to the index. */
KV_API kv_status kv_model_metadata_element(const kv_model* model, const char* key, uint64_t index, kv_metadata* out,
                                           kv_error* error);

typedef struct kv_tensor_info { /* strings live as long as the model */
  uint32_t struct_size;
  uint32_t type; /* KV_TYPE_* */
  const char* name;
  uint64_t shape[4]; /* outermost first: a matrix is [1, 1, out, in] */
  uint64_t bytes;
} kv_tensor_info;
KV_API kv_status kv_model_tensor_at(const kv_model* model, size_t index, kv_tensor_info* out, kv_error* error);

/* -- A model from your own tensors: for tests, research and tools. Zero means absent where a field is optional. */
enum { KV_NORM_RMS = 0, KV_NORM_NONE = 1 };
enum { KV_ROPE_NONE = 0, KV_ROPE_ADJACENT = 1, KV_ROPE_HALVES = 2 }; /* which elements of a head form a pair */
enum { KV_ACTIVATION_SILU = 0, KV_ACTIVATION_GELU = 1, KV_ACTIVATION_GELU_TANH = 2, KV_ACTIVATION_RELU = 3 };

typedef struct kv_model_config {
  uint32_t struct_size;
  uint32_t layers;
  uint32_t dim; /* width of embeddings and hidden rows */
  uint32_t heads;
  uint32_t kv_heads;             /* 0 = heads; divides heads */
  uint32_t head_dim;             /* 0 = dim / heads */
  uint32_t ffn_dim;              /* 0 = no feed-forward part */
  uint32_t vocab;                /* 0 = no embedding table and no output head: rows in, hidden rows out */
  uint32_t context_length;       /* 0 = no stated limit */
  uint32_t norm;                 /* KV_NORM_*. RMS: attn_norm, ffn_norm, output_norm are required */
  float norm_epsilon;            /* 0 = 1e-5 */
  uint32_t activation;           /* KV_ACTIVATION_* of the gated feed-forward part */
  float attention_scale;         /* 0 = 1 / sqrt(head_dim) */
  uint32_t rope;                 /* KV_ROPE_* */
  uint32_t rope_dims;            /* rotated elements of a head; 0 = head_dim */
  float rope_theta;              /* 0 = 10000 */
  uint32_t no_residual;          /* 1 = the output of a part replaces its input instead of being added */
  uint32_t no_output_projection; /* 1 = no attn_output: attention output (heads * head_dim = dim) is used as it is */
  uint32_t window;               /* sliding window in tokens for all layers; 0 = full attention */
  uint32_t reserved;
} kv_model_config;

/* Tensors, named as in GGUF files; matrices are [out, in]:
 *   token_embd.weight [vocab, dim], output_norm.weight [dim], output.weight [vocab, dim] (absent: token_embd is used),
 *   blk.N.attn_norm.weight [dim], attn_q.weight [heads * head_dim, dim], attn_k.weight and attn_v.weight
 *   [kv_heads * head_dim, dim], each with an optional .bias, attn_q_norm.weight and attn_k_norm.weight [head_dim]
 *   (optional), attn_output.weight [dim, heads * head_dim], ffn_norm.weight [dim],
 *   ffn_gate.weight and ffn_up.weight [ffn_dim, dim], ffn_down.weight [dim, ffn_dim]. */
KV_API kv_status kv_model_builder_create(kv_runtime* runtime, const kv_model_config* config, kv_model_builder** out,
                                         kv_error* error);
/* Copies the data (types.h has the layouts). rows = 1 for vectors. bytes must be exactly what the shape needs. */
KV_API kv_status kv_model_builder_add(kv_model_builder* builder, const char* name, uint32_t type, uint32_t rows,
                                      uint32_t width, const void* data, size_t bytes, kv_error* error);
/* Checks that every tensor the configuration needs is there with the right shape. The builder is empty afterwards, and
 * unchanged when this fails. */
KV_API kv_status kv_model_builder_finish(kv_model_builder* builder, kv_model** out, kv_error* error);
KV_API void kv_model_builder_release(kv_model_builder* builder);

/* ---- 9. TOKENIZER -------------------------------------------------------------------------------------------------*/
/* The model's tokenizer; NULL when the file has none. Valid while the model or a context of it lives. */
KV_API const kv_tokenizer* kv_model_tokenizer(const kv_model* model);

typedef struct kv_tokenizer_info { /* strings live as long as the model */
  uint32_t struct_size;
  uint32_t vocab;
  const char* kind;           /* "llama" (SentencePiece-style) or "gpt2" (byte-level BPE) */
  const char* pre;            /* pre-tokenizer of byte-level BPE, else "" */
  int32_t bos, eos, eot, unk; /* -1 = none */
  uint32_t add_bos, add_eos;  /* what KV_TOKENIZE_ADD_SPECIAL adds */
} kv_tokenizer_info;
KV_API kv_status kv_tokenizer_get_info(const kv_tokenizer* tokenizer, kv_tokenizer_info* out, kv_error* error);

enum {
  KV_TOKENIZE_ADD_SPECIAL = 1,  /* add the begin (and end) token the model asks for */
  KV_TOKENIZE_PARSE_SPECIAL = 2 /* text that spells a special token becomes that token; never for text from users */
};
/* Any bytes are accepted, NUL and broken UTF-8 included; kv_detokenize gives the same bytes back. */
KV_API kv_status kv_tokenize(const kv_tokenizer* tokenizer, const char* text, size_t length, uint32_t flags,
                             int32_t* tokens, size_t capacity, size_t* count, kv_error* error);

enum { KV_TEXT_SPECIAL = 1 }; /* special tokens appear as their spelling; without it they are empty */
/* The bytes of one token; they may be a part of a character, see kv_text_stream. */
KV_API kv_status kv_token_text(const kv_tokenizer* tokenizer, int32_t token, uint32_t flags, char* text,
                               size_t capacity, size_t* length, kv_error* error);
KV_API kv_status kv_detokenize(const kv_tokenizer* tokenizer, const int32_t* tokens, size_t count, uint32_t flags,
                               char* text, size_t capacity, size_t* length, kv_error* error);
/* 1 for the tokens after which a model has finished (end of text, end of turn). */
KV_API int32_t kv_token_ends_generation(const kv_tokenizer* tokenizer, int32_t token);

/* Text from tokens as they come, in whole characters; a first token's leading space stays (kv_detokenize drops it). */
KV_API kv_status kv_text_stream_create(const kv_tokenizer* tokenizer, uint32_t flags, kv_text_stream** out,
                                       kv_error* error);
/* text is valid until the next call on the stream; it may be empty (not NULL) while a character is unfinished. Bytes
 * that can never become a character pass as they are. The stream keeps the model alive. */
KV_API kv_status kv_text_stream_push(kv_text_stream* stream, int32_t token, const char** text, size_t* length,
                                     kv_error* error);
/* What was held back; the stream starts anew. */
KV_API kv_status kv_text_stream_flush(kv_text_stream* stream, const char** text, size_t* length, kv_error* error);
KV_API void kv_text_stream_release(kv_text_stream* stream);

/* ---- 10. CONTEXT --------------------------------------------------------------------------------------------------*/
enum {
  KV_CONTEXT_POISON = 1 /* for tests: cache rows nobody owns are filled with NaN when they are freed */
};

typedef struct kv_context_options {
  uint32_t struct_size;
  uint32_t flags;            /* KV_CONTEXT_* */
  const char* device;        /* section 6; NULL = "auto" */
  const char* variant;       /* forces a named code path of the backend, e.g. "scalar", "avx2"; NULL = best */
  uint64_t max_tokens;       /* cached tokens over all sequences, shared ones counted once; whole pages are handed out.
                                 0 = the model's context length, less if the budget or the device holds less; when the
                                 length is not known, what the budget holds, or 4096 */
  uint64_t memory_budget;    /* bytes for cache and scratch (not weights); 0 = no limit but max_tokens */
  uint32_t k_type, v_type;   /* KV_TYPE_*; 0 = f16 where the device has it */
  uint32_t page_tokens;      /* tokens per page; 0 = the device's preference */
  uint32_t threads;          /* CPU threads; 0, and more than that = as many as the process may use */
  uint32_t compute_mode;     /* KV_COMPUTE_*, types.h */
  uint32_t max_batch_tokens; /* tokens computed at once; longer prompts are split; 0 = the device's preference */
  uint32_t max_sequences;    /* sequences in one step; 0 = 16 */
  uint32_t reserved;
  const kv_model_options* load; /* progress and cancel for weights made by this call; may be NULL */
} kv_context_options;

typedef struct kv_memory_plan {
  uint32_t struct_size;
  uint32_t page_tokens;
  uint64_t weight_bytes;    /* on the device; shared by all contexts of the model there */
  uint64_t cache_bytes;     /* when one sequence holds max_tokens; each more may leave one page partly empty */
  uint64_t scratch_bytes;   /* programs and queues */
  uint64_t bytes_per_token; /* of cache, all layers; exact when a page is full */
  uint64_t max_tokens;      /* the capacity such a context would have */
} kv_memory_plan;
/* What kv_context_create would take, asked before anything is allocated (a device is opened, nothing is loaded). */
KV_API kv_status kv_context_plan(kv_model* model, const kv_context_options* options, kv_memory_plan* out,
                                 kv_error* error);

/* Opens the device, makes the model's weights there unless they exist, and an empty cache that grows page by page. One
 * sequence, KV_DEFAULT_SEQUENCE, exists from the start. */
KV_API kv_status kv_context_create(kv_model* model, const kv_context_options* options, kv_context** out,
                                   kv_error* error);
KV_API void kv_context_release(kv_context* context);

typedef struct kv_context_info { /* strings live as long as the context */
  uint32_t struct_size;
  uint32_t page_tokens;
  const char* backend; /* "cpu" */
  const char* device;  /* "cpu:0" */
  const char* variant; /* "avx2" */
  const char* choice;  /* how "auto" chose: one line per backend that was passed over; "" when named */
  uint64_t max_tokens;
  uint64_t free_tokens; /* that can still be appended, in whole pages */
  uint32_t k_type, v_type;
  uint32_t compute_mode;  /* EXACT or FAST */
  uint32_t deterministic; /* 1: bits do not depend on chunks, batch, threads, pages */
  uint32_t max_batch_tokens;
  uint32_t sequences;           /* alive */
  uint32_t row_width;           /* floats per output row: vocab, or dim without an output head */
  uint32_t threads;             /* asked for; 0 = the device's default */
  uint64_t cache_bytes;         /* held now */
  uint64_t weight_bytes;        /* of the model on this device, shared by its contexts there */
  uint64_t scratch_bytes;       /* programs, queues, output rows */
  uint64_t tokens_computed;     /* since creation: tokens run through the layers */
  uint64_t projections;         /* query, key and value projections computed: 3 x layers x tokens_computed */
  uint64_t projections_avoided; /* that recomputing every sequence at every step would have needed on top */
  uint64_t pages_used;          /* over all cache groups */
  uint64_t pages_shared;        /* used by more than one sequence */
} kv_context_info;
KV_API kv_status kv_context_get_info(const kv_context* context, kv_context_info* out, kv_error* error);

/* ---- 11. SEQUENCES ------------------------------------------------------------------------------------------------
 * A sequence is a list of tokens whose keys and values are cached. Ids are never reused within a context. */
#define KV_DEFAULT_SEQUENCE ((kv_sequence)0)
#define KV_TOKEN_ROW (-1) /* stands for an embedding row in token lists */

KV_API kv_status kv_sequence_create(kv_context* context, kv_sequence* out, kv_error* error);
/* A new sequence that holds the first `length` tokens of another; pages are shared, copied on the first write. */
KV_API kv_status kv_sequence_fork(kv_context* context, kv_sequence sequence, uint64_t length, kv_sequence* out,
                                  kv_error* error);
/* Keeps the first `length` tokens. Logits of the new last token come with the next appended token. */
KV_API kv_status kv_sequence_truncate(kv_context* context, kv_sequence sequence, uint64_t length, kv_error* error);
/* Frees the sequence and the pages nobody else uses. */
KV_API kv_status kv_sequence_release(kv_context* context, kv_sequence sequence, kv_error* error);
KV_API kv_status kv_sequence_length(const kv_context* context, kv_sequence sequence, uint64_t* out, kv_error* error);
/* Token ids [first, first + count); KV_TOKEN_ROW for embedding rows. */
KV_API kv_status kv_sequence_tokens(const kv_context* context, kv_sequence sequence, uint64_t first, size_t count,
                                    int32_t* tokens, kv_error* error);

/* ---- 12. RUNNING --------------------------------------------------------------------------------------------------*/
enum {                     /* which rows a call yields */
       KV_OUTPUT_LAST = 0, /* of the last token of each input */
       KV_OUTPUT_NONE = 1,
       KV_OUTPUT_ALL = 2 /* of every token, handed to `row` one by one */
};

/* One output row (logits, or a hidden row for a model with no output head) of the token at `position`. */
typedef void (*kv_row_fn)(void* user, kv_sequence sequence, uint64_t position, const float* row, uint32_t width);

typedef struct kv_step_options {
  uint32_t struct_size;
  uint32_t outputs;        /* KV_OUTPUT_* */
  const kv_cancel* cancel; /* may be NULL. Cancelled calls change nothing (but see keep_chunks) */
  kv_progress_fn progress; /* tokens; after each internal batch; may be NULL */
  void* progress_user;
  kv_row_fn row; /* for KV_OUTPUT_ALL; rows of a call that fails later have been handed out already */
  void* row_user;
  float* into;          /* for KV_OUTPUT_LAST: where the rows go, [count][row_width]; NULL = borrowed rows */
  uint64_t into_floats; /* capacity */
  uint32_t keep_chunks; /* 1: a cancelled or failing call keeps the internal batches that were finished; the result's
                                `length` says how far it got */
  uint32_t reserved;
} kv_step_options;

typedef struct kv_step_result { /* filled when the call fails too, unless its arguments were refused as a whole */
  uint32_t struct_size;         /* arrays of results: set it in each; the first one's is the distance between them */
  kv_status status;             /* of this input; others in the step are not affected */
  const float* rows; /* [width] last token's row: logits, or hidden row; NULL if none. Valid until the next call
                                of this section on the context or its release, or in `into` */
  uint32_t width;
  uint32_t reserved;
  uint64_t length;     /* tokens held by the sequence afterwards */
  uint64_t computed;   /* tokens run through the layers by this call */
  uint64_t reused;     /* tokens taken from the cache instead */
  const char* message; /* why, when status is not KV_OK; valid as `rows`; else "" */
} kv_step_result;

/* Appends `count` >= 1 tokens to a sequence. result may be NULL. KV_CONTEXT_FULL: they do not fit; the message has both
 * numbers, nothing is computed. */
KV_API kv_status kv_prefill(kv_context* context, kv_sequence sequence, const int32_t* tokens, size_t count,
                            const kv_step_options* options, kv_step_result* result, kv_error* error);

typedef struct kv_decode_input { /* frozen */
  kv_sequence sequence;
  int32_t token;
  uint32_t reserved;
} kv_decode_input;
/* Appends one token to each of `count` different sequences; results [count]. Returns KV_OK when every input succeeded;
 * otherwise the first failing input's status, and results[i].status for each: the inputs that succeeded are done. */
KV_API kv_status kv_decode_step(kv_context* context, const kv_decode_input* inputs, size_t count,
                                const kv_step_options* options, kv_step_result* results, kv_error* error);

typedef struct kv_step_input {
  uint32_t struct_size; /* the first one's is the distance between inputs */
  uint32_t reserved;
  kv_sequence sequence;
  const int32_t* tokens; /* [count] ids, or KV_TOKEN_ROW for the next row of `rows`; NULL = all are rows */
  const float* rows;     /* embedding rows [number of KV_TOKEN_ROW][dim]; may be NULL when there are none */
  uint64_t count;        /* tokens to append, >= 1 */
} kv_step_input;
/* The batched step both calls above stand on: prompt chunks and single tokens of different sequences together. */
KV_API kv_status kv_step(kv_context* context, const kv_step_input* inputs, size_t count, const kv_step_options* options,
                         kv_step_result* results, kv_error* error);

/* ---- 13. LOOKING INSIDE -------------------------------------------------------------------------------------------*/
enum { KV_CACHE_K = 1, KV_CACHE_V = 2 };
/* Cached rows [first, first + count) of one layer as f32, [count][kv_heads * head_dim (v_head_dim for V)]. Keys are
 * stored after the rotary embedding. floats = capacity of out, at least what the rows need. */
KV_API kv_status kv_cache_read(kv_context* context, kv_sequence sequence, uint32_t layer, uint32_t what, uint64_t first,
                               uint64_t count, float* out, uint64_t floats, kv_error* error);

typedef struct kv_trace_record { /* valid during the callback */
  uint32_t struct_size;
  uint32_t layer;       /* UINT32_MAX: before or after the layers */
  const char* name;     /* "attn_norm", "q", "k", "v", "q_rope", "k_rope", "scores", "weights", "attn", "attn_out",
                              "attn_residual", "ffn_norm", "gate", "up", "glu", "down", "ffn_residual", "embed",
                              "selected", "output_norm", "logits" */
  kv_sequence sequence; /* of a scores or weights row; else of the first row */
  uint64_t position;    /* of a scores or weights row: the query's; else of the first row */
  uint32_t head;        /* of a scores or weights row */
  uint32_t rows, width; /* shape of data, row-major */
  uint32_t reserved;
  uint64_t first_position; /* scores and weights: column j is position first_position + j */
  const float* data;
} kv_trace_record;
typedef void (*kv_trace_fn)(void* user, const kv_trace_record* record);
/* While set, every step reports each named intermediate, on the calling thread. Same results, bit for bit. NULL = off. */
KV_API kv_status kv_context_set_trace(kv_context* context, kv_trace_fn trace, void* user, kv_error* error);

/* ---- 14. SAMPLER --------------------------------------------------------------------------------------------------
 * A token out of logits. Order: logit bias, penalties, hook, temperature, top-k, softmax, top-p, min-p, draw. One seed
 * gives one stream of tokens on every platform (SplitMix64 of seed and draw number, own exponential). */
typedef struct kv_logit_bias { /* frozen */
  int32_t token;
  float bias; /* added to the logit; -INFINITY excludes the token */
} kv_logit_bias;

/* May change the logits in place; the token history is that of kv_sampler_accept. */
typedef void (*kv_logits_fn)(void* user, float* logits, uint32_t count);

typedef struct kv_sampler_options {
  uint32_t struct_size;
  float temperature;  /* 0 = the largest logit, ties to the lowest id, whatever else is set */
  uint32_t top_k;     /* 0 = off */
  uint32_t use_top_p; /* 1: top_p counts (0 = one token, 1 = all) */
  float top_p;
  float min_p;              /* 0 = off: tokens less likely than min_p x the likeliest are left out */
  float repetition_penalty; /* 0 and 1 = off; > 1 makes seen tokens less likely */
  float frequency_penalty;  /* subtracted per occurrence */
  float presence_penalty;   /* subtracted once */
  uint32_t penalty_last;    /* how many accepted tokens the penalties look at; 0 = 64 */
  uint64_t seed;
  const kv_logit_bias* bias; /* copied */
  uint64_t bias_count;
  kv_logits_fn hook; /* may be NULL */
  void* hook_user;
  uint32_t log_probabilities; /* 1: fill kv_sample.log_probability and top; costs a pass over the vocabulary */
  uint32_t reserved;
} kv_sampler_options;
KV_API kv_status kv_sampler_create(const kv_sampler_options* options, kv_sampler** out, kv_error* error);
KV_API void kv_sampler_release(kv_sampler* sampler);

typedef struct kv_candidate { /* frozen */
  int32_t token;
  float log_probability;
} kv_candidate;
typedef struct kv_sample {
  uint32_t struct_size;
  int32_t token;
  float log_probability; /* of the token, in the distribution before temperature and truncation; NaN unless asked for */
  uint32_t top_capacity; /* in: elements at `top` */
  kv_candidate* top;     /* in: may be NULL. Filled with the likeliest tokens, likeliest first */
  uint32_t top_count;    /* out */
  uint32_t reserved;
} kv_sample;
/* Chooses a token and does not change `logits`. KV_BAD_LOGITS: NaN or +infinity, or every token excluded. Does not
 * enter the token into the history: call kv_sampler_accept for each token that becomes part of the text, the prompt's
 * included if penalties are to see it. */
KV_API kv_status kv_sampler_sample(kv_sampler* sampler, const float* logits, uint32_t count, kv_sample* out,
                                   kv_error* error);
KV_API kv_status kv_sampler_accept(kv_sampler* sampler, int32_t token, kv_error* error);
/* Empties the history and starts the random stream of `seed`. */
KV_API kv_status kv_sampler_reset(kv_sampler* sampler, uint64_t seed, kv_error* error);

#ifdef __cplusplus
}
#endif

#endif /* KVASIR_KVASIR_H */
